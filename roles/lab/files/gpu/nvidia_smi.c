/* The lab's `nvidia-smi`: the usual table, `-L`, `-q -x` and `--query-gpu=uuid,compute_cap --format=csv,noheader`, from NVML.
 *
 * The XML has the elements of the real program's version 12 that tools read, in its order. What a GPU does not answer is N/A. */
#define _GNU_SOURCE
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const architectures[] = {"", "", "Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper",
                                            "Blackwell"};

/* Everything that is shown of a GPU, as text. */
struct gpu {
    char name[96], uuid[96], serial[32], vbios[32], bus[32], architecture[32], minor[16], persistence[16], state[16], temperature[16];
    char draw[24], limit[24], total[24], reserved[24], used[24], free[24], uncorrected[24], utilization[24], mig[16], recovery[24], capability[16];
    char display[16];
    unsigned int domain, pci_bus, device, pci_id;
    int watts, cap, mib_used, mib_total;
};

static const char *why(nvmlReturn_t answer) { return answer == NVML_ERROR_NOT_SUPPORTED ? "N/A" : nvmlErrorString(answer); }

#define SHOW(target, call, ...)                                                                                                      \
    do {                                                                                                                             \
        nvmlReturn_t answer = (call);                                                                                                \
        if (answer) {                                                                                                                \
            snprintf(target, sizeof(target), "%s", why(answer));                                                                     \
        } else {                                                                                                                     \
            snprintf(target, sizeof(target), __VA_ARGS__);                                                                           \
        }                                                                                                                            \
    } while (0)

static void word(nvmlReturn_t (*ask)(nvmlDevice_t, char *, unsigned int), nvmlDevice_t device, char *target, size_t length) {
    nvmlReturn_t answer = ask(device, target, (unsigned int)length);
    if (answer) {
        snprintf(target, length, "%s", why(answer));
    }
}

static const char *switched(nvmlEnableState_t state) { return state == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled"; }

static void look(nvmlDevice_t device, struct gpu *gpu) {
    unsigned int value = 0, pending = 0;
    int major = 0, minor = 0;
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    nvmlDeviceArchitecture_t architecture = 0;
    nvmlPstates_t performance = NVML_PSTATE_0;
    nvmlUtilization_t rates = {0};
    nvmlPciInfo_t pci = {0};
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlFieldValue_t recovery = {.fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION};
    unsigned long long errors = 0;
    static const char *const actions[] = {"None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"};

    word(nvmlDeviceGetName, device, gpu->name, sizeof gpu->name);
    word(nvmlDeviceGetUUID, device, gpu->uuid, sizeof gpu->uuid);
    word(nvmlDeviceGetSerial, device, gpu->serial, sizeof gpu->serial);
    word(nvmlDeviceGetVbiosVersion, device, gpu->vbios, sizeof gpu->vbios);
    SHOW(gpu->bus, nvmlDeviceGetPciInfo_v3(device, &pci), "%s", pci.busId);
    gpu->domain = pci.domain, gpu->pci_bus = pci.bus, gpu->device = pci.device, gpu->pci_id = pci.pciDeviceId;
    SHOW(gpu->architecture, nvmlDeviceGetArchitecture(device, &architecture), "%s",
         architecture < sizeof architectures / sizeof *architectures ? architectures[architecture] : "Unknown");
    SHOW(gpu->minor, nvmlDeviceGetMinorNumber(device, &value), "%u", value);
    SHOW(gpu->capability, nvmlDeviceGetCudaComputeCapability(device, &major, &minor), "%d.%d", major, minor);
    SHOW(gpu->mig, nvmlDeviceGetMigMode(device, &value, &pending), "%s", value ? "Enabled" : "Disabled");
    SHOW(gpu->persistence, nvmlDeviceGetPersistenceMode(device, &state), "%s", switched(state));
    SHOW(gpu->display, nvmlDeviceGetDisplayActive(device, &state), "%s", switched(state));
    SHOW(gpu->state, nvmlDeviceGetPerformanceState(device, &performance), "P%d", (int)performance);
    SHOW(gpu->temperature, nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value), "%u C", value);
    SHOW(gpu->draw, nvmlDeviceGetPowerUsage(device, &value), "%.2f W", value / 1000.0);
    gpu->watts = (int)value / 1000;
    SHOW(gpu->limit, nvmlDeviceGetEnforcedPowerLimit(device, &value), "%.2f W", value / 1000.0);
    gpu->cap = (int)value / 1000;
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo_v2(device, &memory);
    SHOW(gpu->total, result, "%llu MiB", memory.total >> 20);
    SHOW(gpu->reserved, result, "%llu MiB", memory.reserved >> 20);
    SHOW(gpu->used, result, "%llu MiB", memory.used >> 20);
    SHOW(gpu->free, result, "%llu MiB", memory.free >> 20);
    gpu->mib_used = (int)(memory.used >> 20), gpu->mib_total = (int)(memory.total >> 20);
    SHOW(gpu->utilization, nvmlDeviceGetUtilizationRates(device, &rates), "%u %%", rates.gpu);
    SHOW(gpu->uncorrected,
         nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors), "%llu", errors);
    result = nvmlDeviceGetFieldValues(device, 1, &recovery);
    SHOW(gpu->recovery, result ? result : recovery.nvmlReturn, "%s", recovery.value.uiVal < 5 ? actions[recovery.value.uiVal] : "Unknown");
}

static void now(char *text, size_t length) {
    time_t seconds = time(NULL);
    strftime(text, length, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
}

/* The word if it is short enough for its column, else what the real program shows for an answer that failed. */
static const char *cell(const char *word) { return strlen(word) > 8 ? "ERR!" : word; }

static void table(const char *driver, int cuda, unsigned int count) {
    static const char *const line = "+-----------------------------------------+------------------------+----------------------+\n";
    static const char *const wide = "+-----------------------------------------------------------------------------------------+\n";
    char when[64];
    now(when, sizeof when);
    printf("%s       \n%s", when, wide);
    char release[16];
    snprintf(release, sizeof release, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    printf("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n%s", driver, driver, release, line);
    puts("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |");
    puts("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |");
    puts("|                                         |                        |               MIG M. |");
    puts("|=========================================+========================+======================|");
    for (unsigned int index = 0; index < count; index++) {
        nvmlDevice_t device;
        struct gpu gpu = {0};
        nvmlDeviceGetHandleByIndex_v2(index, &device);
        look(device, &gpu);
        gpu.temperature[strcspn(gpu.temperature, " ")] = 0;
        int works = !strcmp(gpu.persistence, "Enabled") || !strcmp(gpu.persistence, "Disabled");
        printf("| %3u  %-26.26s %6s  |   %16s %3s | %20s |\n", index, gpu.name,
               works ? (gpu.persistence[0] == 'E' ? "On" : "Off") : "ERR!", gpu.bus, "Off", cell(gpu.uncorrected));
        if (works) {
            printf("| N/A  %3sC  %4s       %8dW / %4dW | %7dMiB / %6dMiB |      0%%      Default |\n", gpu.temperature, gpu.state, gpu.watts,
                   gpu.cap, gpu.mib_used, gpu.mib_total);
        } else {
            printf("| %-39s | %22s | %20s |\n", "ERR! ERR!  ERR!             ERR! /  ERR!", "GPU is lost", "ERR!         ERR!");
        }
        printf("|                                         |                        | %20s |\n%s", cell(gpu.mig), line);
    }
    printf("\n%s", wide);
    puts("| Processes:                                                                              |");
    puts("|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |");
    puts("|        ID   ID                                                               Usage      |");
    puts("|=========================================================================================|");
    printf("|  No running processes found                                                             |\n%s", wide);
}

static void xml_gpu(nvmlDevice_t device) {
    struct gpu gpu = {0};
    look(device, &gpu);
    printf("\t<gpu id=\"%s\">\n", gpu.bus);
    printf("\t\t<product_name>%s</product_name>\n\t\t<product_brand>NVIDIA</product_brand>\n", gpu.name);
    printf("\t\t<product_architecture>%s</product_architecture>\n", gpu.architecture);
    printf("\t\t<display_active>%s</display_active>\n", gpu.display);
    printf("\t\t<persistence_mode>%s</persistence_mode>\n", gpu.persistence);
    printf("\t\t<mig_mode>\n\t\t\t<current_mig>%s</current_mig>\n\t\t\t<pending_mig>%s</pending_mig>\n\t\t</mig_mode>\n", gpu.mig, gpu.mig);
    puts("\t\t<mig_devices>\n\t\t\tNone\n\t\t</mig_devices>");
    printf("\t\t<serial>%s</serial>\n\t\t<uuid>%s</uuid>\n\t\t<minor_number>%s</minor_number>\n", gpu.serial, gpu.uuid, gpu.minor);
    printf("\t\t<vbios_version>%s</vbios_version>\n", gpu.vbios);
    printf("\t\t<gpu_recovery_action>%s</gpu_recovery_action>\n", gpu.recovery);
    printf("\t\t<pci>\n\t\t\t<pci_bus>%02X</pci_bus>\n\t\t\t<pci_device>%02X</pci_device>\n", gpu.pci_bus, gpu.device);
    printf("\t\t\t<pci_domain>%04X</pci_domain>\n\t\t\t<pci_device_id>%08X</pci_device_id>\n", gpu.domain, gpu.pci_id);
    printf("\t\t\t<pci_bus_id>%s</pci_bus_id>\n\t\t</pci>\n", gpu.bus);
    printf("\t\t<fan_speed>N/A</fan_speed>\n\t\t<performance_state>%s</performance_state>\n", gpu.state);
    printf("\t\t<fb_memory_usage>\n\t\t\t<total>%s</total>\n\t\t\t<reserved>%s</reserved>\n", gpu.total, gpu.reserved);
    printf("\t\t\t<used>%s</used>\n\t\t\t<free>%s</free>\n\t\t</fb_memory_usage>\n", gpu.used, gpu.free);
    puts("\t\t<compute_mode>Default</compute_mode>");
    printf("\t\t<utilization>\n\t\t\t<gpu_util>%s</gpu_util>\n\t\t</utilization>\n", gpu.utilization);
    puts("\t\t<ecc_mode>\n\t\t\t<current_ecc>Enabled</current_ecc>\n\t\t\t<pending_ecc>Enabled</pending_ecc>\n\t\t</ecc_mode>");
    puts("\t\t<ecc_errors>\n\t\t\t<volatile>");
    printf("\t\t\t\t<dram_uncorrectable>%s</dram_uncorrectable>\n\t\t\t</volatile>\n\t\t</ecc_errors>\n", gpu.uncorrected);
    printf("\t\t<temperature>\n\t\t\t<gpu_temp>%s</gpu_temp>\n\t\t</temperature>\n", gpu.temperature);
    printf("\t\t<gpu_power_readings>\n\t\t\t<power_draw>%s</power_draw>\n", gpu.draw);
    printf("\t\t\t<current_power_limit>%s</current_power_limit>\n\t\t</gpu_power_readings>\n", gpu.limit);
    puts("\t\t<processes>\n\t\t</processes>\n\t</gpu>");
}

static void xml(const char *driver, int cuda, unsigned int count) {
    char when[64];
    now(when, sizeof when);
    puts("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>");
    printf("\t<timestamp>%s</timestamp>\n\t<driver_version>%s</driver_version>\n", when, driver);
    printf("\t<cuda_version>%d.%d</cuda_version>\n\t<attached_gpus>%u</attached_gpus>\n", cuda / 1000, cuda % 1000 / 10, count);
    for (unsigned int index = 0; index < count; index++) {
        nvmlDevice_t device;
        nvmlDeviceGetHandleByIndex_v2(index, &device);
        xml_gpu(device);
    }
    puts("</nvidia_smi_log>");
}

static void list(unsigned int count, int capabilities) {
    for (unsigned int index = 0; index < count; index++) {
        nvmlDevice_t device;
        struct gpu gpu = {0};
        nvmlDeviceGetHandleByIndex_v2(index, &device);
        look(device, &gpu);
        if (capabilities) {
            printf("%s, %s\n", gpu.uuid, gpu.capability);
        } else {
            printf("GPU %u: %s (UUID: %s)\n", index, gpu.name, gpu.uuid);
        }
    }
}

static int has(int argc, char **argv, const char *option) {
    for (int index = 1; index < argc; index++) {
        if (!strcmp(argv[index], option)) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
    unsigned int count = 0;
    int cuda = 0;
    nvmlReturn_t result = nvmlInit_v2();
    if (result) {
        fprintf(stderr, "Failed to initialize NVML: %s\n", nvmlErrorString(result));
        return result == NVML_ERROR_LIB_RM_VERSION_MISMATCH ? 18 : 9;
    }
    nvmlSystemGetDriverVersion(driver, sizeof driver);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    nvmlDeviceGetCount_v2(&count);
    int full = has(argc, argv, "-q") && has(argc, argv, "-x");
    int known = argc == 1 || full || has(argc, argv, "-L") || has(argc, argv, "--query-gpu=uuid,compute_cap");
    if (!known) {
        fprintf(stderr, "The lab's nvidia-smi knows: nothing, -L, -q -x, --query-gpu=uuid,compute_cap --format=csv,noheader\n");
        return 2;
    }
    if (!count && !full) {
        puts("No devices were found");
        return 6;
    }
    if (full) {
        xml(driver, cuda, count);
    } else if (has(argc, argv, "-L")) {
        list(count, 0);
    } else if (argc > 1) {
        list(count, 1);
    } else {
        table(driver, cuda, count);
    }
    nvmlShutdown();
    return EXIT_SUCCESS;
}
