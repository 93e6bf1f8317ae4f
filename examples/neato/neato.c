/* A web server that is nothing but itself: one static binary that serves one file, for an image FROM scratch. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void stop(int signal_number) {
    (void)signal_number;
    static const char farewell[] = "neato: told to stop\n";
    write(STDOUT_FILENO, farewell, sizeof farewell - 1);
    _exit(0);
}

static void answer(int client, const char *path) {
    char request[2048], page[16384], head[128];
    ssize_t asked = read(client, request, sizeof request - 1);
    if (asked <= 0) return;
    request[asked] = 0;
    int file = open(path, O_RDONLY);
    ssize_t size = file < 0 ? -1 : read(file, page, sizeof page);
    if (file >= 0) close(file);
    int length = snprintf(head, sizeof head, "HTTP/1.0 %s\r\nContent-Type: text/plain\r\nContent-Length: %zd\r\n\r\n",
                          size < 0 ? "404 Not Found" : "200 OK", size < 0 ? 0 : size);
    write(client, head, length);
    if (size > 0) write(client, page, size);
    printf("neato: %.*s %s\n", (int)strcspn(request, "\r\n"), request, size < 0 ? "404" : "200");
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "/etc/neato/page";
    int port = argc > 2 ? atoi(argv[2]) : 8080, yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int server = socket(AF_INET, SOCK_STREAM, 0);
    /* Process 1 of a container gets only the signals it asks for. */
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 16)) {
        perror("neato");
        return 1;
    }
    printf("neato: serving %s on port %d\n", path, port);
    for (;;) {
        int client = accept(server, NULL, NULL);
        if (client < 0) continue;
        answer(client, path);
        close(client);
    }
}
