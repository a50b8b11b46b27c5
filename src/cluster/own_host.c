/*
 * own_host.c - at which address can other machines reach this one? The one of TUTTI_BIND; else, in
 * this order, what its name resolves to, the one of the default route, those of its interfaces; and
 * loopback where there is nothing else.
 */
#include "cluster/cluster.h"
#include "net/world.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 16

typedef struct hosts {
    char text[MOST][128];
    int n;
} hosts;

static void add(hosts *h, const char *text)
{
    if (h->n == MOST)
        return;
    for (int i = 0; i < h->n; i++)
        if (strcmp(h->text[i], text) == 0)
            return;
    snprintf(h->text[h->n++], sizeof(h->text[0]), "%s", text);
}

static void add_address(hosts *h, const struct sockaddr *a)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (a == NULL)
        return;
    if (a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, text,
                  sizeof(text));
    else if (a->sa_family == AF_INET6 &&
             !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr))
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, text,
                  sizeof(text));
    if (text[0] != '\0' && !tti_is_loopback(text))
        add(h, text);
}

static void add_name(hosts *h)
{
    char name[256] = "";
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (gethostname(name, sizeof(name) - 1) != 0 || getaddrinfo(name, NULL, &want, &found) != 0)
        return;
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next)
        add_address(h, a->ai_addr);
    freeaddrinfo(found);
}

// The address that packets beyond this network would come from; none is sent.
static void add_route(hosts *h)
{
    struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)}, own;
    socklen_t bytes = sizeof(own);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, "203.0.113.1", &far.sin_addr);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&far, sizeof(far)) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &bytes) == 0)
        add_address(h, (struct sockaddr *)&own);
    if (fd >= 0)
        close(fd);
}

static void add_interfaces(hosts *h)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return;
    for (int family = AF_INET; family == AF_INET || family == AF_INET6;
         family = family == AF_INET ? AF_INET6 : -1)
        for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
            if (a->ifa_addr != NULL && a->ifa_addr->sa_family == family &&
                (a->ifa_flags & IFF_UP) != 0 && (a->ifa_flags & IFF_LOOPBACK) == 0)
                add_address(h, a->ifa_addr);
    freeifaddrs(all);
}

bool tti_own_host(const char *bind, int i, char out[128])
{
    hosts h = {.n = 0};
    if (bind != NULL && strcmp(bind, "0.0.0.0") != 0 && strcmp(bind, "::") != 0) {
        snprintf(out, 128, "%s", bind);
        (void)tti_interface_address(bind, out);
        return i == 0;
    }
    add_name(&h);
    add_route(&h);
    add_interfaces(&h);
    if (h.n == 0)
        add(&h, "127.0.0.1");
    if (i >= h.n)
        return false;
    memcpy(out, h.text[i], sizeof(h.text[0]));
    return true;
}
