package notify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// journalSocket is the socket on which journald receives entries with fields.
const journalSocket = "/run/systemd/journal/socket"

// MessageID is the MESSAGE_ID field of the entries. journalctl MESSAGE_ID=... finds all of them.
const MessageID = "6f5d1b1e0e0c4d6f9a55a3a1a5c0f7d2"

// Journal is a Sender that writes a notice into the system's journal as one entry, with CORPUS_ fields in addition to
// the message. It does nothing on a system without journald.
type Journal struct {
	Socket string // of journald; empty for journalSocket
}

// Send implements Sender.
func (j Journal) Send(_ context.Context, n Notice) error {
	socket := j.Socket
	if socket == "" {
		socket = journalSocket
	}
	conn, err := net.Dial("unixgram", socket)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing into the journal: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write(entry(n)); err != nil {
		return fmt.Errorf("writing into the journal: %w", err)
	}
	return nil
}

// The syslog priorities of entries.
const (
	priorityError   = 3
	priorityWarning = 4
	priorityNotice  = 5
	priorityInfo    = 6
)

// entry encodes n in journald's native protocol.
func entry(n Notice) []byte {
	var b bytes.Buffer
	priority := priorityError
	switch n.Event {
	case Expiry:
		priority = priorityWarning
	case Success, GuestReady:
		priority = priorityNotice
	case NoChange:
		priority = priorityInfo
	}
	message := n.Subject()
	if n.Error != "" {
		message += ": " + n.Error
	}
	for _, e := range n.Expiring {
		message += "; " + e.String()
	}
	for _, f := range [][2]string{
		{"MESSAGE", message}, {"MESSAGE_ID", MessageID}, {"PRIORITY", strconv.Itoa(priority)},
		{"SYSLOG_IDENTIFIER", "corpus-agent"},
		{"CORPUS_EVENT", string(n.Event)}, {"CORPUS_RUN", n.Run}, {"CORPUS_COMMAND", n.Command},
		{"CORPUS_OUTCOME", string(n.Outcome)},
		{"CORPUS_EXIT_CODE", strconv.Itoa(n.Exit)}, {"CORPUS_SERVICE", n.Service}, {"CORPUS_INSTANCE", n.Instance},
		{"CORPUS_FROM", pairText(n.From)}, {"CORPUS_TO", pairText(n.To)},
		{"CORPUS_STATES", strconv.Itoa(n.States.Total)}, {"CORPUS_CHANGED", strconv.Itoa(n.States.Effective())},
		{"CORPUS_ALWAYS", always(n.States)}, {"CORPUS_FAILED", strconv.Itoa(n.States.Failed)},
		{"CORPUS_DURATION_SECONDS", strconv.FormatFloat(n.Ended.Sub(n.Started).Seconds(), 'f', 3, 64)},
		{"CORPUS_HINT", n.Hint}, {"CORPUS_GUEST", guestName(n)},
	} {
		field(&b, f[0], redact.Controls(f[1])) // journalctl shows fields without escaping them
	}
	return b.Bytes()
}

// guestName returns the name of the guest that is ready; "" for a notice of a run.
func guestName(n Notice) string {
	if n.Guest == nil {
		return ""
	}
	return n.Guest.Name
}

// always returns how many states act at every run; "" for none.
func always(c report.Counts) string {
	if c.Always == 0 {
		return ""
	}
	return strconv.Itoa(c.Always)
}

func pairText(p *ledger.Pair) string {
	if p == nil {
		return ""
	}
	return p.String()
}

// field writes NAME=value, or the form with a length if v has several lines. It omits an empty v.
func field(b *bytes.Buffer, name, v string) {
	switch {
	case v == "":
	case strings.Contains(v, "\n"):
		b.WriteString(name + "\n")
		_ = binary.Write(b, binary.LittleEndian, uint64(len(v))) // a buffer takes everything
		b.WriteString(v + "\n")
	default:
		b.WriteString(name + "=" + v + "\n")
	}
}
