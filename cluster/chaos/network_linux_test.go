package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/cluster/natsbus"
)

// workers is how many workers there are.
const workers = 3

// spacePrefix begins the names of all namespaces and disks; the process follows.
const spacePrefix = "pcechaos-"

// nowhere is a hardware address that nobody has.
const nowhere = "02:77:00:00:00:fe"

// hosts are the broker's, the coordinator's and the workers', each named by what
// runs there.
var hosts = func() []string {
	list := []string{"broker", "coordinator"}
	for i := range workers {
		list = append(list, natsbus.WorkerName(i))
	}
	return list
}()

// address is that of a host.
func address(host string) string { return fmt.Sprintf("10.77.0.%d", slices.Index(hosts, host)+1) }

// network is hosts on a switch, all of which are namespaces. Nothing is done to
// the network of the machine itself.
type network struct{ prefix string }

// ip runs iproute2.
func ip(args ...string) error {
	cmd := exec.Command("ip", args...)
	cmd.Env = environment(nestedVariable + "=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

// missing says what the test lacks on this machine, or "".
func missing() string {
	if os.Geteuid() != 0 {
		return "it makes network namespaces, which takes root: run it as root, or in a privileged container"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "there is no program ip: install iproute2, for example with apt-get install iproute2"
	}
	probe := fmt.Sprintf("%sprobe-%d", spacePrefix, os.Getpid())
	err := errors.Join(ip("netns", "add", probe), ip("-n", probe, "link", "add", "br0", "type", "bridge"), ip("netns", "del", probe))
	if err != nil {
		return fmt.Sprintf("the kernel makes no namespace or bridge here (%v): a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN", err)
	}
	return ""
}

// newNetwork makes the hosts, which are there until the end of the test.
func newNetwork(t *testing.T) *network {
	t.Helper()
	removeLeftovers(t)
	n := &network{prefix: fmt.Sprintf("%s%d-", spacePrefix, os.Getpid())}
	t.Cleanup(func() {
		for _, host := range append([]string{"switch"}, hosts...) {
			if err := ip("netns", "del", n.space(host)); err != nil {
				t.Error(err)
			}
		}
	})
	hub := n.space("switch")
	commands := [][]string{{"netns", "add", hub}, {"-n", hub, "link", "add", "br0", "type", "bridge"}, {"-n", hub, "link", "set", "br0", "up"}}
	for _, host := range hosts {
		space, port := n.space(host), port(host)
		commands = append(commands, [][]string{
			{"netns", "add", space},
			{"-n", space, "link", "set", "lo", "up"},
			{"-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space},
			{"-n", hub, "link", "set", port, "master", "br0", "up"},
			{"-n", space, "addr", "add", address(host) + "/24", "dev", "eth0"},
			{"-n", space, "link", "set", "eth0", "up"},
		}...)
	}
	for _, c := range commands {
		if err := ip(c...); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// removeLeftovers removes the namespaces and disks of tests that were killed.
func removeLeftovers(t *testing.T) {
	entries, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if orphaned(e.Name()) {
			if err := ip("netns", "del", e.Name()); err != nil {
				t.Log(err)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && orphaned(f[0]) {
			if err := syscall.Unmount(f[1], syscall.MNT_DETACH); err != nil {
				t.Log(err)
			}
		}
	}
}

// orphaned reports whether a name is that of a process which is gone.
func orphaned(name string) bool {
	rest, ok := strings.CutPrefix(name, spacePrefix)
	owner, _, _ := strings.Cut(strings.TrimPrefix(rest, "probe-"), "-")
	pid, err := strconv.Atoi(owner)
	return ok && err == nil && (pid == os.Getpid() || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH))
}

// space is the namespace of a host.
func (n *network) space(host string) string { return n.prefix + host }

// port is where a host is plugged into the switch.
func port(host string) string { return fmt.Sprintf("port%d", slices.Index(hosts, host)) }

// setLink takes a host off the network, or puts it back. The host notices at
// once, unless it is done silently: at the switch.
func (n *network) setLink(host, state string, silent bool) error {
	if silent {
		return ip("-n", n.space("switch"), "link", "set", port(host), state)
	}
	return ip("-n", n.space(host), "link", "set", "eth0", state)
}

// cut keeps two hosts from reaching each other; others reach both. Sending fails,
// unless it is done silently: then what is sent gets lost.
func (n *network) cut(a, b string, silent bool) error {
	return n.both(a, b, func(space, to string) []string {
		if silent {
			return []string{"-n", space, "neigh", "replace", to, "lladdr", nowhere, "nud", "permanent", "dev", "eth0"}
		}
		return []string{"-n", space, "route", "add", "blackhole", to}
	})
}

// join ends a cut.
func (n *network) join(a, b string, silent bool) error {
	return n.both(a, b, func(space, to string) []string {
		if silent {
			return []string{"-n", space, "neigh", "del", to, "dev", "eth0"}
		}
		return []string{"-n", space, "route", "del", "blackhole", to}
	})
}

func (n *network) both(a, b string, command func(space, to string) []string) error {
	return errors.Join(ip(command(n.space(a), address(b))...), ip(command(n.space(b), address(a))...))
}
