package main

import (
	"cmp"
	"errors"
	"os"
	"os/user"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// byFlag adds --by, the name of the person who moves a channel.
func (p *program) byFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.by, "by", "",
		"who makes this move, for the history of the channel (CORPUS_BY); by default the user and this machine")
}

// longestName is the maximum length, in bytes, of the name of a person.
const longestName = 128

// mover returns the name of the person who moves channels: from --by or CORPUS_BY, or else the user and the machine.
func (p *program) mover() (string, error) {
	given := cmp.Or(p.by, p.Getenv("CORPUS_BY"))
	if given == "" {
		return p.userAndMachine(), nil
	}
	if len(given) > longestName || strings.TrimSpace(given) == "" || strings.ContainsFunc(given, unicode.IsControl) ||
		trust.Printable(given) != given {
		return "",
			exit.WithCode(exit.Usage,
				diag.Usage.Hint(errors.New("--by is not a name: it is longer than 128 bytes, or has control characters"),
					"give a name in one line, such as --by anna@example.com, or set CORPUS_BY"))
	}
	return given, nil
}

// userAndMachine returns the name of the user who runs this program and of the machine.
func (p *program) userAndMachine() string {
	name := cmp.Or(p.Getenv("SUDO_USER"), p.Getenv("USER"), p.Getenv("LOGNAME"))
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	who := trust.Printable(strings.TrimSuffix(cmp.Or(name, "unknown")+"@"+host, "@"))
	return strings.ToValidUTF8(who[:min(len(who), longestName)], "")
}
