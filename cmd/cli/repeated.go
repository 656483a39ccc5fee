package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// Repeated is the value of a flag that may be given several times: the texts, in the order of the command line. The
// type of pflag sets up a writer of CSV for every such flag that a command declares, whether it is given or not.
type Repeated []string

// RepeatedVar declares a flag, with a short name unless that is "", that may be given several times.
func RepeatedVar(flags *pflag.FlagSet, texts *[]string, name, short, usage string) {
	flags.VarP((*Repeated)(texts), name, short, usage)
}

// Set adds a text.
func (r *Repeated) Set(text string) error {
	*r = append(*r, text)
	return nil
}

// String returns the texts for messages.
func (r *Repeated) String() string { return strings.Join(*r, ",") }

// Type returns the name of the value's type for help texts.
func (*Repeated) Type() string { return "stringArray" }
