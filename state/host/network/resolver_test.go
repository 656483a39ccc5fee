package network

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer starts a name server. It answers by UDP and by TCP; with cut, its answers by UDP are empty and marked as
// truncated.
func nameServer(t *testing.T, answer func(m *dnsmessage.Message), cut bool) string {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	streams, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { streams.Close() })
	reply := func(question []byte, cut bool) []byte {
		var m dnsmessage.Message
		if m.Unpack(question) != nil {
			return nil
		}
		m.Response, m.Truncated = true, cut
		if !cut {
			answer(&m)
		}
		packed, _ := m.Pack()
		return packed
	}
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := packets.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte("nonsense"), from)
			_, _ = packets.WriteTo(reply(buf[:n], cut), from)
		}
	}()
	go func() {
		for {
			conn, err := streams.Accept()
			if err != nil {
				return
			}
			var size [2]byte
			_, _ = io.ReadFull(conn, size[:])
			question := make([]byte, binary.BigEndian.Uint16(size[:]))
			_, _ = io.ReadFull(conn, question)
			packed := reply(question, false)
			_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...))
			_ = conn.Close()
		}
	}()
	return packets.LocalAddr().String()
}

func TestResolving(t *testing.T) {
	name := dnsmessage.MustNewName("www.example.org.")
	add := func(m *dnsmessage.Message, kind dnsmessage.Type, body dnsmessage.ResourceBody) {
		m.Answers = append(m.Answers,
			dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Type: kind, Class: dnsmessage.ClassINET},
				Body: body})
	}
	for _, c := range []struct {
		name   string
		kind   dnsmessage.Type
		answer func(m *dnsmessage.Message)
		want   []string
		fails  string
		cut    bool
	}{
		{name: "an alias and its address", kind: dnsmessage.TypeA, want: []string{"real.example.org.", "192.0.2.7"},
			answer: func(m *dnsmessage.Message) {
				add(m, dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName("real.example.org.")})
				add(m, dnsmessage.TypeA, &dnsmessage.AResource{A: [4]byte{192, 0, 2, 7}})
				add(m, dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: []string{"not asked for"}})
			}},
		{name: "too long for a packet", kind: dnsmessage.TypeMX, cut: true, want: []string{"10 mx.example.org."},
			answer: func(m *dnsmessage.Message) {
				add(m, dnsmessage.TypeMX, &dnsmessage.MXResource{Pref: 10, MX: dnsmessage.MustNewName("mx.example.org.")})
			}},
		{name: "text", kind: dnsmessage.TypeTXT, want: []string{`"a \"b\"" "c"`}, answer: func(m *dnsmessage.Message) {
			add(m, dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: []string{`a "b"`, "c"}})
		}},
		{name: "no such name", kind: dnsmessage.TypeA, want: []string{}, answer: func(m *dnsmessage.Message) {
			m.RCode = dnsmessage.RCodeNameError
		}},
		{name: "a server that fails", kind: dnsmessage.TypeA, fails: "ServerFailure", answer: func(m *dnsmessage.Message) {
			m.RCode = dnsmessage.RCodeServerFailure
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := dnsmessage.Question{Name: name, Type: c.kind, Class: dnsmessage.ClassINET}
			m, err := ask(context.Background(), nameServer(t, c.answer, c.cut), q)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("the error is %v, want %s", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := answers(m, c.kind); !slices.Equal(got, c.want) {
				t.Errorf("records are %q, want %q", got, c.want)
			}
		})
	}
}

func TestReverseNames(t *testing.T) {
	for ip, want := range map[string]string{
		"192.0.2.7":   "7.2.0.192.in-addr.arpa",
		"2001:db8::1": "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
	} {
		if got := reverseName(netip.MustParseAddr(ip)); got != want {
			t.Errorf("the reverse name of %s is %s, want %s", ip, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		user, password, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, user+":"+password+" "+r.Header.Get("X-Mine"))
	}))
	defer server.Close()
	r := Request{URL: server.URL, User: "u", Password: "p", Header: map[string]string{"X-Mine": "yes"}, Unverified: true}
	got, err := Network{}.Get(context.Background(), r)
	if err != nil || got.Status != http.StatusTeapot || got.Body != "u:p yes" ||
		got.Header["content-type"] != "text/plain" {
		t.Errorf("the answer is %+v, %v", got, err)
	}
	r.Unverified = false
	if _, err := (Network{}).Get(context.Background(), r); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate without a trusted issuer gives %v", err)
	}
	if _, err := (Network{}).Get(context.Background(), Request{URL: server.URL + "/slow", Limit: 50 * time.Millisecond,
		Unverified: true}); err == nil {
		t.Error("a server that does not answer is no error")
	}
}
