package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// programTimeout limits how long sendmail or a configured program may run.
const programTimeout = time.Minute

// environment returns the environment variables of such a program.
func environment(n Notice) []string {
	return process.Clean(
		"CORPUS_STAGE=notify", "CORPUS_RUN="+n.Run, "CORPUS_EVENT="+string(n.Event),
		"CORPUS_OUTCOME="+string(n.Outcome),
		"CORPUS_SERVICE="+n.Service, "CORPUS_INSTANCE="+n.Instance,
	)
}

// Command is a Sender that runs a program and writes the notice as JSON to its standard input.
type Command struct{ Argv []string }

// Send implements Sender.
func (c Command) Send(ctx context.Context, n Notice) error {
	body, err := n.document()
	if err != nil {
		return err
	}
	result, err := hook.Program(ctx, c.Argv[0], hook.Options{Env: environment(n), Dir: "/", Timeout: programTimeout,
		Args: c.Argv[1:], Stdin: bytes.NewReader(body)})
	return explain("notify.command", result, err)
}

// Mail is a Sender that mails the notice with sendmail, which every mail server package provides.
type Mail struct {
	To       []string
	From     string
	Sendmail string
}

// Send implements Sender.
func (m Mail) Send(ctx context.Context, n Notice) error {
	if _, err := os.Stat(m.Sendmail); err != nil {
		return diag.Notify.Hint(fmt.Errorf("mailing: %w", err),
			"install a mail server that provides sendmail, or set notify.mail.sendmail")
	}
	args := []string{"-i"}
	if m.From != "" {
		args = append(args, "-f", m.From)
	}
	// Addresses come after --, so that sendmail does not parse one as an option.
	args = append(append(args, "--"), m.To...)
	result, err := hook.Program(ctx, m.Sendmail, hook.Options{Env: environment(n), Dir: "/", Timeout: programTimeout,
		Args: args, Stdin: strings.NewReader(m.message(n))})
	return explain("mailing", result, err)
}

func (m Mail) message(n Notice) string {
	var b strings.Builder
	header := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, oneLine(text))
		}
	}
	header("From", m.From)
	header("To", strings.Join(m.To, ", "))
	header("Subject", mime.QEncoding.Encode("utf-8", oneLine(n.Subject())))
	header("Date", n.Ended.Format(time.RFC1123Z))
	header("Message-ID", "<"+n.delivery()+"@"+n.Host+">")
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "8bit")
	return b.String() + "\n" + n.Text()
}

func explain(what string, result hook.Result, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return diag.Notify.Hint(fmt.Errorf("%s: %w", what, err), "agent.yaml names a program that does not exist")
	case result.Output != "":
		return fmt.Errorf("%s: %s: %w: %s", what, filepath.Base(result.Name), err, oneLine(result.Output))
	}
	return fmt.Errorf("%s: %s: %w", what, filepath.Base(result.Name), err)
}
