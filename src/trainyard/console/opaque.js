// Loaded before the scripts of a TensorBoard. In its opaque origin it has neither storage nor cookies, and can start workers
// only from blobs.
(() => {
  "use strict";
  const storage = () => {
    const values = new Map();
    return {
      getItem: (key) => values.get(String(key)) ?? null,
      setItem: (key, value) => { values.set(String(key), String(value)); },
      removeItem: (key) => { values.delete(String(key)); },
      clear: () => values.clear(),
      key: (index) => [...values.keys()][index] ?? null,
      get length() { return values.size; },
    };
  };
  for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { value: storage(), configurable: true });
  }
  Object.defineProperty(document, "cookie", { get: () => "", set: () => {}, configurable: true });
  const Real = window.Worker;
  window.Worker = class extends Real {
    constructor(address, options) {
      const whole = new URL(address, document.baseURI).href;
      const script = new Blob([`importScripts(${JSON.stringify(whole)})`], { type: "text/javascript" });
      super(whole.startsWith("blob:") ? whole : URL.createObjectURL(script), options);
    }
  };
})();
