/* The sandbox process of a pod: holds the pod's namespaces open and reaps orphans as their PID 1. */
#include <signal.h>
#include <stdlib.h>
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

int main(void) {
    struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    struct sigaction stop = {.sa_handler = on_stop};
    if (sigaction(SIGCHLD, &child, NULL) || sigaction(SIGINT, &stop, NULL) || sigaction(SIGTERM, &stop, NULL)) {
        return EXIT_FAILURE;
    }
    for (;;) {
        pause();
    }
}
