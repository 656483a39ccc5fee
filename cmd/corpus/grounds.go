package main

import (
	"fmt"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// printGrounds says why a channel may point where it does, from what it requires down to what hosts
// reported.
func printGrounds(w io.Writer, g trust.Grounds) {
	if g.Requires != nil {
		fmt.Fprintf(w, "    requires %s (%s)\n", g.Requires, g.By)
	}
	if s := g.Proof; s != nil {
		fmt.Fprintf(w, "    proof: %s was on %s/%s, healthy on %s, of %s, until %s, signed with %s\n", trust.Printable(s.Version), trust.Printable(s.Project),
			trust.Printable(s.Channel), hostCount(s.Hosts), s.At.Format(time.RFC3339), s.Expires.Format("2006-01-02"), shortKeys(s.Keys))
		for _, h := range s.Hosts {
			fmt.Fprintf(w, "      %s at %s, run %s\n", trust.Printable(h.Host), h.At.Format(time.RFC3339), trust.Printable(h.Run))
		}
	}
	if g.Refused != "" {
		fmt.Fprintf(w, "    hosts refuse it: %s\n    hint: %s\n", trust.Printable(g.Refused), g.Hint)
	}
}
