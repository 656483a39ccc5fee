package processes

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

// Socket is a TCP socket of the running system.
type Socket struct {
	Local   netip.AddrPort
	Remote  netip.AddrPort // the port is 0 for a listening socket
	Listens bool
	User    int   // ID of the user who created it
	Holders []int // IDs of the processes that have it open, sorted; empty if they may not be read
}

// Takes reports whether the socket accepts connections to an address.
func (s Socket) Takes(to netip.AddrPort) bool {
	return s.Listens && s.Local.Port() == to.Port() && (s.Local.Addr().IsUnspecified() ||
		s.Local.Addr() == to.Addr().Unmap())
}

// Sockets returns the TCP sockets of the running system for which wanted returns true, in the order of the kernel. It
// does not return sockets of other network namespaces, such as those of a container.
func Sockets(wanted func(Socket) bool) []Socket {
	var found []Socket
	inodes := map[string]int{} // inode of a socket -> index of its address
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, _ := os.ReadFile(table)
		for line := range strings.Lines(string(data)) {
			socket, inode, ok := socketOf(strings.Fields(line))
			if !ok || !wanted(socket) {
				continue
			}
			if inode != "0" { // a connection that no process has accepted, or that was closed, has none
				inodes["socket:["+inode+"]"] = len(found)
			}
			found = append(found, socket)
		}
	}
	if len(inodes) > 0 {
		hold(found, inodes)
	}
	return found
}

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// socketOf parses the fields of a line of /proc/net/tcp.
func socketOf(fields []string) (s Socket, inode string, ok bool) {
	if len(fields) < 10 {
		return s, "", false
	}
	var there bool
	s.Local, ok = procAddress(fields[1])
	s.Remote, there = procAddress(fields[2])
	user, err := strconv.Atoi(fields[7])
	s.Listens, s.User = fields[3] == listening, user
	return s, fields[9], ok && there && err == nil
}

// procAddress parses an address of /proc/net/tcp: words of four bytes in the byte order of the machine, and the port.
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

// hold sets the Holders of sockets.
func hold(sockets []Socket, inodes map[string]int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/fd")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err != nil {
			continue
		}
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			target, err := os.Readlink(filepath.Join(dir, f.Name()))
			at, wanted := inodes[target]
			if err == nil && wanted && !slices.Contains(sockets[at].Holders, pid) {
				sockets[at].Holders = append(sockets[at].Holders, pid)
			}
		}
	}
	for i := range sockets {
		slices.Sort(sockets[i].Holders)
	}
}
