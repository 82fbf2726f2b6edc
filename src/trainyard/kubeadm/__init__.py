"""kubeadm init, join and reset of one host, and findings about its kubeadm files."""
