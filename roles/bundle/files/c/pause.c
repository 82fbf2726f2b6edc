/* The sandbox process of a pod: holds the pod's namespaces open and reaps orphans as their PID 1. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_child(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

static void on_stop(int signal) {
    (void)signal;
    _exit(0);
}

int main(int argc, char **argv) {
    /* kubeadm's check before an upgrade runs the image with -v and waits for it to end. */
    for (int index = 1; index < argc; index++) {
        if (!strcmp(argv[index], "-v")) {
            printf("pause %s\n", VERSION);
            return EXIT_SUCCESS;
        }
    }
    struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    struct sigaction stop = {.sa_handler = on_stop};
    if (sigaction(SIGCHLD, &child, NULL) || sigaction(SIGINT, &stop, NULL) || sigaction(SIGTERM, &stop, NULL)) {
        return EXIT_FAILURE;
    }
    for (;;) {
        pause();
    }
}
