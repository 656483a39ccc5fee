package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Lookup returns the records of a kind (A, AAAA, CNAME, MX, NS, PTR, TXT) as dig +short prints them, with the aliases
// that lead to them. server is the address of a name server, "" for those of resolv.conf. The name for PTR may be an
// address. Unlike the C library, Lookup does not read /etc/hosts. It returns no error if there are no records, and one
// if no server answers.
func (n Network) Lookup(ctx context.Context, kind, name, server string) ([]string, error) {
	kindOf, ok := recordKinds()[kind]
	if !ok {
		return nil, fmt.Errorf("records of the kind %s are not supported", kind)
	}
	if ip, err := netip.ParseAddr(name); err == nil && kind == "PTR" {
		name = reverseName(ip)
	}
	question, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return nil, fmt.Errorf("%q is not a domain name: %w", name, err)
	}
	servers := []string{server}
	if server == "" {
		servers = n.nameservers()
	}
	var errs []error
	for _, s := range servers {
		m, err := ask(ctx, net.JoinHostPort(s, "53"), dnsmessage.Question{Name: question, Type: kindOf,
			Class: dnsmessage.ClassINET})
		if err == nil {
			return answers(m, kindOf), nil
		}
		errs = append(errs, fmt.Errorf("querying %s for %s: %w", s, name, err))
	}
	return nil, diag.Setting.Hint(errors.Join(errs...), "check the name servers in /etc/resolv.conf")
}

func recordKinds() map[string]dnsmessage.Type {
	return map[string]dnsmessage.Type{"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "CNAME": dnsmessage.TypeCNAME,
		"MX": dnsmessage.TypeMX,
		"NS": dnsmessage.TypeNS, "PTR": dnsmessage.TypePTR, "TXT": dnsmessage.TypeTXT}
}

// reverseName returns the name under which an address has its PTR records.
func reverseName(ip netip.Addr) string {
	var name strings.Builder
	b := ip.AsSlice()
	for i := len(b) - 1; i >= 0; i-- {
		if ip.Is4() {
			fmt.Fprintf(&name, "%d.", b[i])
		} else {
			fmt.Fprintf(&name, "%x.%x.", b[i]&15, b[i]>>4)
		}
	}
	if ip.Is4() {
		return name.String() + "in-addr.arpa"
	}
	return name.String() + "ip6.arpa"
}

// nameservers returns the name servers of resolv.conf or, as in the C library, the host itself if there are none.
func (n Network) nameservers() []string {
	var servers []string
	data, _ := n.files.ReadFile("/etc/resolv.conf") // a host without it runs a name server itself
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			servers = append(servers, f[1])
		}
	}
	if len(servers) == 0 {
		return []string{"127.0.0.1"}
	}
	return servers
}

// dnsTimeout limits the time for an answer of one name server.
const dnsTimeout = 3 * time.Second

// ask queries one name server. It repeats the query by TCP if the answer is too long for a packet.
func ask(ctx context.Context, server string, q dnsmessage.Question) (*dnsmessage.Message, error) {
	id := uint16(rand.Uint32())
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: id, RecursionDesired: true}, Questions: []dnsmessage.Question{q}}
	packed, err := m.Pack()
	if err != nil {
		return nil, err
	}
	answer, err := exchange(ctx, "udp", server, packed, id)
	if err == nil && answer.Truncated {
		answer, err = exchange(ctx, "tcp", server, packed, id)
	}
	if err != nil {
		return nil, err
	}
	switch answer.RCode {
	case dnsmessage.RCodeSuccess, dnsmessage.RCodeNameError:
		return answer, nil
	}
	return nil, fmt.Errorf("the answer is %s", strings.TrimPrefix(answer.RCode.String(), "RCode"))
}

func exchange(ctx context.Context, network, server string, question []byte, id uint16) (*dnsmessage.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if network == "tcp" {
		question = append(binary.BigEndian.AppendUint16(nil, uint16(len(question))), question...)
	}
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	for {
		packet, err := receive(conn, network)
		if err != nil {
			return nil, err
		}
		m := &dnsmessage.Message{}
		if err := m.Unpack(packet); err == nil && m.ID == id && m.Response {
			return m, nil
		} else if network == "tcp" {
			return nil, errors.Join(err, errors.New("the answer is not for this query"))
		}
		// The packet does not answer this query; the answer may still come.
	}
}

func receive(conn net.Conn, network string) ([]byte, error) {
	if network == "udp" {
		packet := make([]byte, 4096)
		n, err := conn.Read(packet)
		return packet[:n], err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(conn, packet)
	return packet, err
}

// answers formats the answers of a kind, and the aliases before them.
func answers(m *dnsmessage.Message, kind dnsmessage.Type) []string {
	lines := []string{}
	for _, r := range m.Answers {
		if r.Header.Type == kind || r.Header.Type == dnsmessage.TypeCNAME {
			lines = append(lines, record(r.Body))
		}
	}
	return lines
}

func record(body dnsmessage.ResourceBody) string {
	switch b := body.(type) {
	case *dnsmessage.AResource:
		return netip.AddrFrom4(b.A).String()
	case *dnsmessage.AAAAResource:
		return netip.AddrFrom16(b.AAAA).String()
	case *dnsmessage.CNAMEResource:
		return b.CNAME.String()
	case *dnsmessage.NSResource:
		return b.NS.String()
	case *dnsmessage.PTRResource:
		return b.PTR.String()
	case *dnsmessage.MXResource:
		return fmt.Sprintf("%d %s", b.Pref, b.MX.String())
	case *dnsmessage.TXTResource:
		parts := make([]string, len(b.TXT))
		for i, part := range b.TXT {
			parts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(part) + `"`
		}
		return strings.Join(parts, " ")
	}
	return body.GoString()
}
