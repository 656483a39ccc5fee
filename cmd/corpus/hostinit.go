package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// settingUp has the flags of the commands that set a host up over ssh.
type settingUp struct {
	agent       string // file of the agent; empty for the one beside this program
	hostStore   string // URL of the store for the host; empty for the one of this command
	environment string // file with the variables of the host's runs; empty to leave them as they are
	yes, dry    bool
}

// setUpHost is the output of such a command.
type setUpHost struct {
	Host        string          `json:"host"` // its hostname
	Destination string          `json:"destination"`
	Changes     []remote.Change `json:"changes"`
	Run         *int            `json:"run,omitempty"` // exit code of the first run; nil if it was not started
}

func (s *settingUp) flags(c *cobra.Command) *cobra.Command {
	f := c.Flags()
	f.StringVar(&s.agent, "agent", "", "program or package (.deb) of the agent; the program beside this one by default")
	f.StringVar(&s.hostStore, "host-store", "", "URL at which the host reaches the store, if it is another one")
	f.StringVar(&s.environment, "environment", "",
		"file that becomes /etc/corpus/environment, with the host's credentials of the store")
	f.BoolVarP(&s.yes, "yes", "y", false, "change the host, and its hostname, without a question")
	f.BoolVar(&s.dry, "dry-run", false, "show what the host lacks, and change nothing")
	return c
}

// setUp sets up the host at a destination of ssh, and starts its first run.
func (p *program) setUp(ctx context.Context, s settingUp, destination string, w remote.Wanted) error {
	h := remote.Host{Destination: destination, Err: p.Err}
	facts, err := h.Examine(ctx, w.Agent.Digest)
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	plan, err := remote.NewPlan(w, facts)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	answer := setUpHost{Host: w.Hostname, Destination: destination, Changes: append([]remote.Change{}, plan.Changes...)}
	if s.dry && p.json {
		return p.JSON(answer)
	}
	p.showSetUp(s, answer)
	if s.dry {
		return nil
	}
	if err := p.confirmSetUp(ctx, s, answer, facts.Hostname()); err != nil {
		return err
	}
	if err := p.install(ctx, h, plan); err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	return p.startFirst(ctx, h, answer)
}

// install makes the changes of a plan, and shows the progress of the copy.
func (p *program) install(ctx context.Context, h remote.Host, plan *remote.Plan) error {
	if len(plan.Changes) == 0 && plan.Introduced() {
		return nil
	}
	show, done := p.progress("copying")
	defer done()
	return h.Install(ctx, plan, func(done, total int64) {
		if show != nil {
			show("corpus-agent", done, total)
		}
	})
}

// wanted returns what a host is to have.
func (p *program) wanted(ctx context.Context, s settingUp, hostname string, more []remote.Setting) (w remote.Wanted,
	err error) {
	if w.Agent, err = agentOf(s.agent); err != nil {
		return w, exit.WithCode(exit.Usage, err)
	}
	opened, err := p.openStore()
	if err != nil {
		return w, err
	}
	if w.Root, err = p.rootOfTrust(ctx, opened); err != nil {
		return w, err
	}
	if s.environment != "" {
		if w.Environment, err = walk.ReadGiven(s.environment); err != nil {
			return w, exit.WithCode(exit.Usage, fmt.Errorf("reading the environment of the host: %w", err))
		}
		if line := config.NoAssignment(string(w.Environment)); line > 0 {
			return w, exit.WithCode(exit.Usage, diag.Config.Hint(
				fmt.Errorf("%s:%d is no assignment of a variable", s.environment, line),
				"write lines such as AWS_ACCESS_KEY_ID=...; # begins a comment"))
		}
	}
	url := cmp.Or(s.hostStore, p.store)
	w.Hostname, w.NewConfig = hostname, config.Example(url)
	w.Settings = append([]remote.Setting{{Name: "store", Value: url}}, more...)
	if strings.HasPrefix(url, "file:") {
		fmt.Fprintf(p.Err, "warning: the host reads %s of its own disk; --host-store names a store that it reaches\n", url)
	}
	return w, nil
}

// agentOf reads the agent from a file, by default the one beside this program.
func agentOf(file string) (remote.Agent, error) {
	if file != "" {
		return remote.ReadAgent(file)
	}
	own, err := os.Executable()
	if err != nil {
		return remote.Agent{}, err
	}
	file = filepath.Join(filepath.Dir(own), "corpus-agent")
	there, err := walk.Exists(file)
	if err != nil {
		return remote.Agent{}, err
	}
	if !there {
		return remote.Agent{}, diag.Program.Hint(fmt.Errorf("there is no agent beside this program: %s does not exist", file),
			"give --agent FILE, the program or the package (.deb) of corpus-agent of this release")
	}
	return ownAgent(file)
}

// ownAgent reads the agent beside this program, which has to be of the same commit.
func ownAgent(file string) (remote.Agent, error) {
	a, err := remote.ReadAgent(file)
	if err != nil {
		return a, err
	}
	if mine := revision(); mine != a.Revision {
		return a, diag.Program.Hint(fmt.Errorf("%s is of the commit %.12s, and this program of %.12s", file, a.Revision,
			mine),
			"install both of the same release, or say with --agent %s that it is the right one", file)
	}
	return a, nil
}

// revision returns the commit that this program was built from; empty if it is not known.
func revision() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return ""
	}
	return remote.Revision(info)
}

// showSetUp shows the changes of a host.
func (p *program) showSetUp(s settingUp, answer setUpHost) {
	out := p.Err
	if s.dry {
		out = p.Out
	}
	for _, c := range answer.Changes {
		from := ""
		if c.From != "" {
			from = c.From + " -> "
		}
		fmt.Fprintf(out, "~ %s: %s%s\n", c.What, from, redact.URLs(c.To))
	}
	fmt.Fprintf(out, "then %s runs corpus-agent deploy\n", answer.Destination)
}

// confirmSetUp asks the user to confirm the changes, and by itself that of the hostname.
func (p *program) confirmSetUp(ctx context.Context, s settingUp, answer setUpHost, now string) error {
	if s.yes || len(answer.Changes) == 0 {
		return nil
	}
	if !p.Asks() {
		return exit.WithCode(exit.Usage,
			diag.Usage.Hint(errors.New("a person has to confirm the changes of a host, and there is no terminal to ask on"),
				"give --yes to make them, or --dry-run to only see them"))
	}
	ok := true
	if now != answer.Host {
		ok = p.Confirm(ctx, fmt.Sprintf("Change the hostname of %s from %s to %s?", answer.Destination, now, answer.Host))
	}
	if !ok || !p.Confirm(ctx, fmt.Sprintf("Make these changes on %s?", answer.Destination)) {
		return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("nothing was changed"), "answer y to change the host"))
	}
	return nil
}

// startFirst starts the first run of a host.
func (p *program) startFirst(ctx context.Context, h remote.Host, answer setUpHost) error {
	code, err := h.Run(ctx)
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	answer.Run = &code
	if code != exit.OK {
		err = exit.WithCode(code, diag.Run.Hint(fmt.Errorf("%s is set up, and its first run failed: exit code %d",
			answer.Destination, code), "see the reason above, or `ssh %s corpus-agent why`; its timer tries again",
			answer.Destination))
		if !p.json {
			return err
		}
		return errors.Join(p.JSON(answer), cli.AlreadyReported(err))
	}
	return p.answer(answer, "%s is set up as %s", answer.Destination, answer.Host)
}
