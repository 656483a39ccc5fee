package host

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// Listeners are the processes of the running system that listen on an address of it, by their numbers.
// Several share a socket, or a port. It is empty where none is found, as for an address of another
// network namespace, or where that may not be read.
func (h *Host) Listeners(address netip.AddrPort) []int {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, _ := os.ReadFile(table)
		for line := range strings.Lines(string(data)) {
			if inode := listens(strings.Fields(line), address); inode != "" {
				sockets["socket:["+inode+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return nil
	}
	return holders(sockets)
}

// listens is the inode of a line of /proc/net/tcp whose socket takes connections to an address, and else "".
func listens(fields []string, address netip.AddrPort) string {
	if len(fields) < 10 || fields[3] != listening {
		return ""
	}
	local, ok := procAddress(fields[1])
	if !ok || local.Port() != address.Port() || !local.Addr().IsUnspecified() && local.Addr() != address.Addr().Unmap() {
		return ""
	}
	return fields[9]
}

// procAddress reads an address of /proc/net/tcp: words of four bytes in the order of the machine, and the
// port.
func procAddress(s string) (netip.AddrPort, bool) {
	ip, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(ip)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), ok
}

// holders are the processes that have one of the sockets open, in the order of their numbers.
func holders(sockets map[string]bool) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*/fd")
	for _, dir := range dirs {
		files, _ := os.ReadDir(dir)
		holds := slices.ContainsFunc(files, func(f os.DirEntry) bool {
			target, err := os.Readlink(filepath.Join(dir, f.Name()))
			return err == nil && sockets[target]
		})
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(dir))); err == nil && holds {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}
