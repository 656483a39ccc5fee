package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// checkNames checks the arguments that a command's usage line calls PROJECT, VERSION, CHANNEL, FROM, TO and HOST. A
// bad name is a usage error before the command opens a store, takes a lock or writes a file.
func checkNames(c *cobra.Command, args []string) error {
	words := strings.Fields(c.Use)[1:]
	for i, arg := range args[:min(len(args), len(words))] {
		if err := checkName(words[i], arg); err != nil {
			return exit.WithCode(exit.Usage, err)
		}
	}
	return nil
}

func checkName(word, arg string) error {
	switch word {
	case "PROJECT":
		return artifact.CheckProject(arg)
	case "CHANNEL", "FROM", "TO":
		return artifact.CheckChannel(arg)
	case "VERSION":
		return artifact.CheckVersion(arg)
	case "HOST":
		return CheckHost(arg)
	}
	return nil
}

// longestHost is the longest account and host name that CheckHost accepts, in bytes: a DNS name has at most 253,
// and Linux accounts have at most 32 and an @.
const longestHost = 253 + 33

// CheckHost checks the destination of an ssh connection: a host or an address, optionally preceded by an account
// and an @. Git and ssh read a leading dash as an option, and a slash or a colon as the beginning of a path.
func CheckHost(name string) error {
	account, host := "root", name
	if at := strings.LastIndexByte(name, '@'); at >= 0 { // an account may contain an @
		account, host = name[:at], name[at+1:]
	}
	if len(name) <= longestHost && plain(account, "._-+$@") && plain(host, "._-") && !strings.Contains(host, "..") {
		return nil
	}
	return diag.Usage.Hint(errors.New("HOST is not the name of a host for ssh"),
		"write root@host; ports, keys and IPv6 addresses belong in ~/.ssh/config")
}

// plain reports whether a text starts with a letter, a digit or an underscore, and contains only these and the
// given punctuation.
func plain(text, punctuation string) bool {
	for i := range len(text) {
		c := text[i]
		word := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
		if !word && (i == 0 || strings.IndexByte(punctuation, c) < 0) {
			return false
		}
	}
	return text != ""
}
