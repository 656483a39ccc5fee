package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// stepFlags has the flags that select steps of a deploy and set the project's configuration for it.
type stepFlags struct {
	only string
	set  []string
}

func (s *stepFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.only, "only", "", "run only these steps, separated by commas: "+
		strings.Join(procedure.Steps(), ", "))
	cli.RepeatedVar(flags, &s.set, "set", "",
		"key=value of the project's configuration, for this run; key=- and key=@FILE read a secret from standard "+
			"input or a file; may be repeated")
}

func (s *stepFlags) parse(given *agent.Given, stdin io.Reader) error {
	var err error
	if given.Only, err = procedure.ParseOnly(s.only); err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	given.Settings, err = procedure.ParseSettings(s.set, procedure.InputOf(stdin))
	return exit.WithCode(exit.Usage, err)
}

// progressForm is the form in which a run prints its events beside its result; "" for none.
type progressForm string

// progressJSON is one JSON object per line, on standard error.
const progressJSON progressForm = "json"

// String implements pflag.Value.
func (f *progressForm) String() string { return string(*f) }

// Type returns the name of the value's type for help texts.
func (f *progressForm) Type() string { return "form" }

// Set implements pflag.Value.
func (f *progressForm) Set(text string) error {
	if progressForm(text) != progressJSON {
		return fmt.Errorf("%q is not a form of progress; json is the only one", text)
	}
	*f = progressJSON
	return nil
}

// addProgress adds the flag --progress to a command that runs the agent.
func (p *program) addProgress(flags *pflag.FlagSet) {
	flags.Var(&p.events, "progress",
		"json prints the events of the run on standard error while they happen, one object per line")
}
