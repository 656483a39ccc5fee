package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/doctor/onhost"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with this host and its store",
		Long: `doctor makes all checks at once and prints one line for each, with a cure below what is wrong: the configuration, the
identity, the root of trust, the store (address, credentials, rights to read, list and write, clock, signatures and their
expiry, channels), the timer and the installed version, disks, links and the last run.

It changes nothing: rights to write are examined by writes on a condition that is never met.

Exit codes: 0 nothing is wrong or there are only warnings, 2 the configuration may not be read, 3 a check failed.`,
		Example: `  corpus-agent doctor
  corpus-agent doctor --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := p.patient()
			if err != nil {
				return err
			}
			found, err := h.Examine(c.Context())
			if err != nil {
				return err
			}
			return p.Findings(found, p.json)
		},
	}
}

// patient returns the host for doctor to examine. Mistakes in the configuration become findings, and the defaults are
// used in its place.
func (p *program) patient() (*onhost.Host, error) {
	if p.checkConfiguration() != nil {
		a, err := p.reader()
		if err != nil {
			return nil, err
		}
		return &onhost.Host{Host: a.Host, OpenStore: openStore(examining(a.Config), p.SlowStore)}, nil
	}
	sources, err := p.sources(map[string]string{})
	if err != nil {
		return nil, err
	}
	mistakes, warnings := config.Check(sources, p.layout().Root)
	a, err := p.examined(len(mistakes) > 0)
	if err != nil {
		return nil, err
	}
	if damaged := a.Config.File.Damaged; damaged != nil && len(mistakes) == 0 {
		mistakes.AddError(diag.Pos{File: a.Config.File.Path}, damaged)
	}
	return &onhost.Host{
		Host: a.Host, OpenStore: openStore(examining(a.Config), p.SlowStore), Mistakes: mistakes, Warnings: warnings,
	}, nil
}

// examining returns the settings with which doctor asks the store. A person waits, so a store that does not answer
// becomes a finding after a few seconds.
func examining(settings config.Config) config.Config {
	settings.FetchRetry = 5 * time.Second
	return settings
}

// examined returns the agent with its settings, or with the defaults if these have mistakes.
func (p *program) examined(mistaken bool) (*agent.Agent, error) {
	if !mistaken {
		return p.opened(map[string]string{})
	}
	defaults, err := config.Load(config.Sources{})
	if err != nil {
		return nil, err
	}
	return p.openedAs(defaults)
}

// reader returns the agent for a command that shows the state of the host. If another user can change the
// configuration, none of it is read: the settings are those of the environment and the flags, and the agent has the
// error.
func (p *program) reader() (*agent.Agent, error) {
	refused := p.checkConfiguration()
	if exit.Code(refused) != exit.Refused {
		return p.agent(map[string]string{})
	}
	flags := map[string]string{}
	if p.store != "" {
		flags["store"] = p.store
	}
	settings, err := config.Load(config.Sources{Getenv: p.Getenv, Flags: flags})
	if err != nil {
		return nil, err
	}
	a, err := p.openedAs(settings)
	if err != nil {
		return nil, err
	}
	a.ConfigRefused = refused
	return a, nil
}
