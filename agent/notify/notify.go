// Package notify sends a notice of how a run ended: to the journal, to a webhook, by mail, or to a configured program.
//
// A receiver cannot change the outcome of the run, and an unreachable receiver does not affect the others: the caller
// sends to each, and the report notes each error.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Event classifies the end of a run. The setting notify.on lists the events to send.
type Event string

// The events. A run that a signal interrupted has none.
const (
	Success  Event = "success" // something was deployed or changed
	Failure  Event = "failure"
	Rollback Event = "rollback"
	NoChange Event = "no-change"
	Expiry   Event = "expiry" // nothing changed, and signatures of the store expire soon

	GuestReady Event = "guest" // a guest of this node is ready; an event of the guest and not of the run
)

// EventOf returns the event of the run that r reports, or "" for none. It never returns Expiry.
func EventOf(r *report.Report) Event {
	switch {
	case r.Exit == exit.RolledBack:
		return Rollback
	case r.Exit == exit.Interrupted:
		return ""
	case r.Exit != exit.OK:
		return Failure
	case r.States.Effective() > 0 || r.About() != nil && (r.From == nil || !r.From.Same(*r.About())):
		return Success
	}
	return NoChange
}

// Notice is the summary of a run that receivers get.
type Notice struct {
	Event    Event          `json:"event"`
	Run      string         `json:"run"`
	Command  string         `json:"command"`
	Host     string         `json:"host"`
	Service  string         `json:"service,omitempty"`
	Instance string         `json:"instance,omitempty"`
	Outcome  report.Outcome `json:"outcome"`
	Exit     int            `json:"exit_code"`
	Started  time.Time      `json:"started"`
	Ended    time.Time      `json:"ended"`
	From     *ledger.Pair   `json:"from,omitempty"`
	To       *ledger.Pair   `json:"to,omitempty"`
	Left     *ledger.Pair   `json:"left,omitempty"`     // what runs now
	Withheld *ledger.Pair   `json:"withheld,omitempty"` // see report.Report
	Fault    *report.Fault  `json:"fault,omitempty"`
	States   report.Counts  `json:"states"`
	Error    string         `json:"error,omitempty"`
	Hint     string         `json:"hint,omitempty"`
	Code     string         `json:"code,omitempty"`
	Failed   *report.Step   `json:"first_failure,omitempty"`
	Expiring []trust.Expiry `json:"expiring,omitempty"` // signatures of the store, see report.Report
	Notes    []string       `json:"notes,omitempty"`
	Guest    *Guest         `json:"guest,omitempty"` // of GuestReady
}

// Guest is a guest of a node that has become ready.
type Guest struct {
	Name    string   `json:"name"`
	Host    string   `json:"host"` // its hostname
	Node    string   `json:"node"`
	Project string   `json:"project"`
	Env     string   `json:"env"`
	Disk    string   `json:"disk"`            // the ID of its disk
	Names   []string `json:"names,omitempty"` // that the node's proxy forwards to it
	SSH     string   `json:"ssh,omitempty"`   // the command that logs in
	Contact string   `json:"contact,omitempty"`
}

// NoticeOfGuest returns the notice that a guest is ready. r is the report of the node's run.
func NoticeOfGuest(r *report.Report, g Guest) Notice {
	return Notice{Event: GuestReady, Run: r.ID, Command: r.Command, Host: r.Host, Service: r.Service,
		Instance: r.Instance, Outcome: r.Outcome, Exit: r.Exit, Started: r.Started, Ended: r.Ended, Guest: &g}
}

// delivery returns what receivers tell a notice by: the disk of a guest, since two runs may notify of it, or the run.
func (n Notice) delivery() string {
	if n.Guest != nil {
		return n.Guest.Disk
	}
	return n.Run
}

// NoticeOf returns the notice of a report, which must be complete.
func NoticeOf(r *report.Report) Notice {
	return Notice{
		Event: EventOf(r), Run: r.ID, Command: r.Command, Host: r.Host, Service: r.Service, Instance: r.Instance,
		Outcome: r.Outcome, Exit: r.Exit, Started: r.Started, Ended: r.Ended, From: r.From, To: r.To,
		Left: r.Left, Withheld: r.Withheld, Fault: r.Fault,
		States: r.States, Error: r.Error, Hint: r.Hint, Code: r.Code, Failed: r.FirstFailure(),
		Expiring: r.Expiring, Notes: r.Notes,
	}
}

// Subject returns the notice in one line.
func (n Notice) Subject() string {
	if n.Guest != nil {
		return fmt.Sprintf("%s: guest %s is ready", n.Host, n.Guest.Name)
	}
	what := n.Command
	if n.To != nil {
		what += " of " + n.To.String()
	}
	return fmt.Sprintf("%s: %s %s", n.Host, what, n.Outcome)
}

// Text returns the notice as the text of a mail.
func (n Notice) Text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", oneLine(n.Subject()))
	if n.Guest != nil {
		return b.String() + n.Guest.text()
	}
	fmt.Fprintf(&b, "run %s, %s to %s\n", n.Run, n.Started.Format(time.RFC3339), n.Ended.Format(time.RFC3339))
	fmt.Fprintf(&b, "%s\n", n.States)
	if n.From != nil {
		fmt.Fprintf(&b, "before: %s\n", n.From)
	}
	if n.Left != nil {
		fmt.Fprintf(&b, "runs now: %s\n", n.Left)
	}
	if n.Withheld != nil {
		fmt.Fprintf(&b, "not deployed: %s\n", n.Withheld)
	}
	if n.Error != "" {
		fmt.Fprintf(&b, "\n%s\n", indented(n.Error))
	}
	if n.Failed != nil {
		fmt.Fprintf(&b, "first failure: %s %s (%s in %s)\n", n.Failed.Function, indented(n.Failed.Name),
			indented(n.Failed.ID), indented(n.Failed.SLS))
	}
	if n.Hint != "" {
		fmt.Fprintln(&b, diag.HintLines(n.Hint))
	}
	for _, e := range n.Expiring {
		fmt.Fprintf(&b, "expires soon: %s\n", e)
	}
	for _, note := range n.Notes {
		fmt.Fprintf(&b, "note: %s\n", indented(note))
	}
	fmt.Fprintf(&b, "\nAll of it, on the host: corpus-agent report %s\n", n.Run)
	return b.String()
}

// text returns the lines of a mail about a guest that is ready.
func (g *Guest) text() string {
	text := fmt.Sprintf("hostname: %s\nproject: %s, %s\n", g.Host, g.Project, g.Env)
	if len(g.Names) > 0 {
		text += "HTTP and HTTPS: " + strings.Join(g.Names, ", ") + "\n"
	}
	if g.SSH != "" {
		text += "SSH: " + g.SSH + "\n"
	}
	return text
}

// indented returns a text whose further lines are indented, so that none of them looks like another line of the mail.
func indented(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\r", "\n"), "\n", "\n  ")
}

// Sender sends a notice to one receiver.
type Sender interface {
	Send(ctx context.Context, n Notice) error
}

// Senders returns the senders that c configures. If foreign is set, the agent works on a tree that is not the running
// system: Senders then omits the journal and those that run programs, and returns the latter's names in skipped.
func Senders(c config.Notify, foreign bool) (senders []Sender, skipped []string) {
	if c.Journal && !foreign {
		senders = append(senders, Journal{})
	}
	if c.WebhookURL != "" {
		senders = append(senders, Webhook{URL: c.WebhookURL, SecretFile: c.WebhookSecret, Timeout: c.WebhookTimeout,
			Tries: c.WebhookTries})
	}
	for _, program := range []struct {
		wanted bool
		name   string
		sender Sender
	}{
		{len(c.MailTo) > 0, "mail", Mail{To: c.MailTo, From: c.MailFrom, Sendmail: c.Sendmail}},
		{len(c.Command) > 0, "notify.command", Command{Argv: c.Command}},
	} {
		switch {
		case program.wanted && foreign:
			skipped = append(skipped, program.name)
		case program.wanted:
			senders = append(senders, program.sender)
		}
	}
	return senders, skipped
}

// Wanted reports whether c is configured to notify of event e. It returns false for "".
func Wanted(c config.Notify, e Event) bool { return e != "" && slices.Contains(c.On, string(e)) }

// document returns n as one line of JSON.
func (n Notice) document() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(n)
	return b.Bytes(), err
}

// oneLine replaces control characters by spaces, so that s cannot become more than one header or field.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}
