/* NVIDIA's management library (NVML) for hosts that have no GPU: answers as a driver with GPUs would.
 *
 * What the GPUs are is text in `settings`, which the program `lab-gpus` fills in a copy of this library: so the library is all that
 * a container needs to see the GPUs of its node, with the same UUIDs. What happens to them at run time lies in files below
 * /run/lab-gpus: `module` (version of the loaded kernel module), `events` (lines "MINOR XID"), `fault.MINOR` (the last XID that is
 * not made good yet). A GPU is there where its device node is. Every function of the header that is not defined here is added by
 * the recipe (kind c_library) and answers "not supported": programs bind lazily, and a missing one would kill them late. */
#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <dlfcn.h>
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16, PATH = 4096, POLL_MS = 50, FELL_OFF_THE_BUS = 79 };

/* Read through a pointer that the compiler cannot see through: the text is put into the file after it was compiled. */
__attribute__((used)) static char settings[1 << 16] = "@lab-gpus-settings@";
static const char *volatile text = settings;

struct nvmlDevice_st {
    int minor;
};
struct nvmlEventSet_st {
    unsigned char registered[MOST];
    long seen; /* bytes of `events` that were delivered */
};

static struct nvmlDevice_st *present[MOST], devices[MOST];
static unsigned int count, users;

/* --- settings and files ------------------------------------------------------------------------------------------------------- */

/* The value of a line "KEY VALUE", or nothing; it is valid until the next call by the same thread. */
static const char *setting(const char *key) {
    static __thread char value[256];
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
        if (!strncmp(line, key, length) && line[length] == ' ') {
            snprintf(value, sizeof value, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
            return value;
        }
    }
    return NULL;
}

static const char *of(nvmlDevice_t device, const char *key) {
    char name[64];
    snprintf(name, sizeof name, "%d.%s", device.handle->minor, key);
    return setting(name);
}

static double number(nvmlDevice_t device, const char *key) {
    const char *value = of(device, key);
    return value ? atof(value) : 0;
}

/* Opens a file of the node: below the folder that this library was loaded from (a plugin has the node's root as a folder), or
 * below /driver-root, where programs that only have the library as a file expect the node. */
static int node_path(char *path, const char *name) {
    Dl_info self;
    char root[PATH] = "";
    if (dladdr((void *)nvmlInit_v2, &self) && self.dli_fname) {
        const char *places[] = {"/usr/lib/", "/lib/", NULL};
        for (const char **place = places; *place; place++) {
            const char *end = strstr(self.dli_fname, *place), *next = end;
            while (next && (next = strstr(next + 1, *place))) {
                end = next;
            }
            if (end) {
                snprintf(root, sizeof root, "%.*s", (int)(end - self.dli_fname), self.dli_fname);
                break;
            }
        }
    }
    const char *roots[] = {root, "/driver-root"};
    for (int index = 0; index < 2; index++) {
        if (snprintf(path, PATH, "%s%s", roots[index], name) < PATH && !access(path, F_OK)) {
            return 1;
        }
    }
    return 0;
}

static FILE *node_file(const char *name) {
    char path[PATH];
    return node_path(path, name) ? fopen(path, "re") : NULL;
}

static int has_node(int minor) {
    char name[64], path[PATH];
    snprintf(name, sizeof name, "/dev/nvidia%d", minor);
    return node_path(path, name);
}

/* The XID that is not made good yet, or 0. */
static int fault(nvmlDevice_t device) {
    char name[64];
    int xid = 0;
    snprintf(name, sizeof name, "/run/lab-gpus/fault.%d", device.handle->minor);
    FILE *file = node_file(name);
    if (file) {
        xid = fscanf(file, "%d", &xid) == 1 ? xid : 0;
        fclose(file);
    }
    return xid;
}

static int memory_fault(nvmlDevice_t device) {
    int xid = fault(device);
    return xid == 48 || xid == 63 || xid == 64 || xid == 94 || xid == 95;
}

/* --- what every answer begins with ---------------------------------------------------------------------------------------------- */

static nvmlReturn_t known(nvmlDevice_t device) {
    if (!users) {
        return NVML_ERROR_UNINITIALIZED;
    }
    for (unsigned int index = 0; index < count; index++) {
        if (present[index] == device.handle) {
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* Identity is answered for a lost GPU, too: a driver remembers it. Whatever has to be asked of the GPU is not. */
static nvmlReturn_t reachable(nvmlDevice_t device) {
    nvmlReturn_t result = known(device);
    if (result) {
        return result;
    }
    return fault(device) == FELL_OFF_THE_BUS || !has_node(device.handle->minor) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

static nvmlReturn_t copy(char *target, unsigned int length, const char *value) {
    if (!value) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (!target) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return (unsigned int)snprintf(target, length, "%s", value) < length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

#define CHECK(test, device, pointer)                                                                                                 \
    do {                                                                                                                             \
        nvmlReturn_t checked = test(device);                                                                                         \
        if (checked || !(pointer)) {                                                                                                 \
            return checked ? checked : NVML_ERROR_INVALID_ARGUMENT;                                                                  \
        }                                                                                                                            \
    } while (0)

/* A function that gives one text, or one number times a factor, of the settings. */
#define TEXT(function, key)                                                                                                          \
    nvmlReturn_t function(nvmlDevice_t device, char *value, unsigned int length) {                                                   \
        CHECK(known, device, value);                                                                                                 \
        return copy(value, length, of(device, key));                                                                                 \
    }
#define NUMBER(function, test, type, key, factor)                                                                                    \
    nvmlReturn_t function(nvmlDevice_t device, type *value) {                                                                        \
        CHECK(test, device, value);                                                                                                  \
        if (!of(device, key)) {                                                                                                      \
            return NVML_ERROR_NOT_SUPPORTED;                                                                                         \
        }                                                                                                                            \
        *value = (type)(number(device, key) * (factor));                                                                             \
        return NVML_SUCCESS;                                                                                                         \
    }

/* --- library and driver --------------------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlInit_v2(void) {
    char module[64] = "";
    FILE *file = node_file("/run/lab-gpus/module");
    if (file) {
        if (!fgets(module, sizeof module, file)) {
            module[0] = 0;
        }
        fclose(file);
        module[strcspn(module, "\n")] = 0;
    }
    const char *driver = setting("driver");
    if (!driver || (file && !module[0])) {
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    if (module[0] && strcmp(module, driver)) {
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    }
    if (users++ == 0) {
        count = 0;
        for (int minor = 0; minor < MOST; minor++) {
            devices[minor].minor = minor;
            nvmlDevice_t device = {&devices[minor]};
            if (of(device, "uuid") && has_node(minor)) {
                present[count++] = &devices[minor];
            }
        }
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void) {
    if (!users) {
        return NVML_ERROR_UNINITIALIZED;
    }
    users--;
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    return users ? copy(version, length, setting("driver")) : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    char whole[64];
    const char *driver = setting("driver");
    snprintf(whole, sizeof whole, "13.%s", driver ? driver : "0");
    return copy(version, length, whole);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    const char *value = setting("cuda");
    if (!version || !value) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *version = atoi(value);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

/* --- which GPUs there are --------------------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *number_of) {
    if (!users || !number_of) {
        return users ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    }
    *number_of = count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *number_of) { return nvmlDeviceGetCount_v2(number_of); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (!users || !device || index >= count) {
        return users ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    }
    device->handle = present[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t find(const char *key, const char *wanted, nvmlDevice_t *device) {
    if (!users || !wanted || !device) {
        return users ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    }
    for (unsigned int index = 0; index < count; index++) {
        nvmlDevice_t one = {present[index]};
        const char *value = of(one, key);
        if (value && !strcasecmp(value, wanted)) {
            *device = one;
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) { return find("uuid", uuid, device); }

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device) { return find("bus", bus, device); }

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus, nvmlDevice_t *device) { return find("bus", bus, device); }

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    CHECK(known, device, index);
    for (*index = 0; present[*index] != device.handle; (*index)++) {
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    CHECK(known, device, minor);
    *minor = (unsigned int)device.handle->minor;
    return NVML_SUCCESS;
}

/* --- what they are ---------------------------------------------------------------------------------------------------------------- */

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
NUMBER(nvmlDeviceGetBrand, known, nvmlBrandType_t, "brand", 1)
NUMBER(nvmlDeviceGetArchitecture, known, nvmlDeviceArchitecture_t, "architecture", 1)

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    CHECK(known, device, major && minor);
    const char *value = of(device, "compute_capability");
    return value && sscanf(value, "%d.%d", major, minor) == 2 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    CHECK(known, device, pci);
    const char *bus = of(device, "bus");
    memset(pci, 0, sizeof *pci);
    if (!bus || sscanf(bus, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff, pci->device & 0xff);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    const char *identity = of(device, "pci_device_id");
    pci->pciDeviceId = identity ? (unsigned int)strtoul(identity, NULL, 16) : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }

/* GPUs that could be divided are not: their layout is not part of the lab. */
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    CHECK(known, device, current && pending);
    *current = *pending = NVML_DEVICE_MIG_DISABLE;
    return number(device, "mig_instances") ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NUMBER(nvmlDeviceGetMaxMigDeviceCount, known, unsigned int, "mig_instances", 1)

/* None of them is divided. The toolkit asks for each that there could be. */
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig_device) {
    (void)device, (void)index, (void)mig_device;
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    CHECK(known, device, is_mig);
    *is_mig = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level) {
    CHECK(known, one, level);
    CHECK(known, other, level);
    *level = NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

/* --- how they are ----------------------------------------------------------------------------------------------------------------- */

NUMBER(nvmlDeviceGetPowerUsage, reachable, unsigned int, "power_draw_watts", 1000)
NUMBER(nvmlDeviceGetPowerManagementLimit, reachable, unsigned int, "power_limit_watts", 1000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, reachable, unsigned int, "power_limit_watts", 1000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, reachable, unsigned int, "power_limit_watts", 1000)
NUMBER(nvmlDeviceGetPerformanceState, reachable, nvmlPstates_t, "performance_state", 1)
NUMBER(nvmlDeviceGetPersistenceMode, reachable, nvmlEnableState_t, "persistence", 1)

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    CHECK(reachable, device, memory);
    memory->total = (unsigned long long)number(device, "memory_mib") << 20;
    memory->used = (unsigned long long)(number(device, "memory_reserved_mib") + number(device, "memory_used_mib")) << 20;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    CHECK(reachable, device, memory);
    memory->total = (unsigned long long)number(device, "memory_mib") << 20;
    memory->reserved = (unsigned long long)number(device, "memory_reserved_mib") << 20;
    memory->used = (unsigned long long)number(device, "memory_used_mib") << 20;
    memory->free = memory->total - memory->used - memory->reserved;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius) {
    CHECK(reachable, device, celsius);
    *celsius = (unsigned int)number(device, "temperature_celsius");
    return sensor == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature) {
    CHECK(reachable, device, temperature);
    temperature->temperature = (int)number(device, "temperature_celsius");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    CHECK(reachable, device, rates);
    rates->gpu = rates->memory = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t *active) {
    CHECK(reachable, device, active);
    *active = NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode) {
    CHECK(reachable, device, mode);
    *mode = NVML_COMPUTEMODE_DEFAULT;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
    CHECK(reachable, device, current && pending);
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                         unsigned long long *errors) {
    (void)counter;
    CHECK(reachable, device, errors);
    *errors = type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED && memory_fault(device);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *number_of, nvmlProcessInfo_t *processes) {
    (void)processes;
    CHECK(reachable, device, number_of);
    *number_of = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int length, nvmlFieldValue_t *values) {
    CHECK(reachable, device, values);
    for (int index = 0; index < length; index++) {
        int answers = values[index].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
        values[index].nvmlReturn = answers ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        values[index].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        values[index].value.uiVal = fault(device) ? NVML_GPU_RECOVERY_ACTION_GPU_RESET : NVML_GPU_RECOVERY_ACTION_NONE;
    }
    return NVML_SUCCESS;
}

/* --- events ----------------------------------------------------------------------------------------------------------------------- */

static long events_size(void) {
    FILE *file = node_file("/run/lab-gpus/events");
    long size = 0;
    if (file) {
        size = fseek(file, 0, SEEK_END) ? 0 : ftell(file);
        fclose(file);
    }
    return size;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    if (!users || !set) {
        return users ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    }
    set->handle = calloc(1, sizeof *set->handle);
    if (!set->handle) {
        return NVML_ERROR_MEMORY;
    }
    set->handle->seen = events_size();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    free(set.handle);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    CHECK(known, device, types);
    *types = nvmlEventTypeXidCriticalError | nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    CHECK(reachable, device, set.handle);
    set.handle->registered[device.handle->minor] |= (types & nvmlEventTypeXidCriticalError) != 0;
    return NVML_SUCCESS;
}

/* The next event of a GPU of the set, 1 if there was one. */
static int next_event(struct nvmlEventSet_st *set, nvmlEventData_t *data) {
    FILE *file = node_file("/run/lab-gpus/events");
    int minor, found = 0;
    unsigned long long xid;
    if (!file) {
        return 0;
    }
    if (!fseek(file, set->seen, SEEK_SET)) {
        while (!found && fscanf(file, "%d %llu\n", &minor, &xid) == 2) {
            set->seen = ftell(file);
            if (minor >= 0 && minor < MOST && set->registered[minor]) {
                memset(data, 0, sizeof *data);
                data->device.handle = &devices[minor];
                data->eventType = nvmlEventTypeXidCriticalError;
                data->eventData = xid;
                data->gpuInstanceId = data->computeInstanceId = 0xFFFFFFFF;
                found = 1;
            }
        }
    }
    fclose(file);
    return found;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    if (!users || !set.handle || !data) {
        return users ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    }
    for (unsigned int waited = 0;; waited += POLL_MS) {
        if (next_event(set.handle, data)) {
            return NVML_SUCCESS;
        }
        if (waited >= timeout_ms) {
            return NVML_ERROR_TIMEOUT;
        }
        nanosleep(&(struct timespec){0, POLL_MS * 1000000L}, NULL);
    }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
