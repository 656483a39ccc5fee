package main

import (
	"fmt"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// printGrounds prints why a channel may point where it does: who signed the pointer, what the channel requires, and
// the proof with the reports of the hosts.
func printGrounds(w io.Writer, l trust.Listing, channel string) {
	pointer, g := l.Channels[channel], l.Grounds[channel]
	fmt.Fprintf(w, "    %s\n    promoted: move %d of the channel, %s (%s)\n", pointer.Digest, g.Promoted.Serial,
		signedWith(g.Promoted.Keys), g.Promoted.By)
	if g.Requires != nil {
		fmt.Fprintf(w, "    requires %s (%s)\n", g.Requires, g.By)
	} else {
		fmt.Fprintln(w, "    requires no proof")
	}
	if s := g.Proof; s != nil {
		fmt.Fprintf(w, "    proof: %s was on %s/%s, healthy on %s, of %s, until %s, %s\n", trust.Printable(s.Version),
			trust.Printable(s.Project),
			trust.Printable(s.Channel), hostCount(s.Hosts), s.At.Format(time.RFC3339), s.Expires.Format("2006-01-02"),
			signedWith(s.Keys))
		fmt.Fprintf(w, "      %s\n", trust.Printable(string(s.Digest)))
		for _, h := range s.Hosts {
			where := ""
			if h.OtherRoot {
				where = ", below another root"
			}
			fmt.Fprintf(w, "      healthy: %s at %s, run %s%s\n", trust.Printable(h.Host), h.At.Format(time.RFC3339),
				trust.Printable(h.Run), where)
		}
	}
	if g.Refused != "" {
		fmt.Fprintf(w, "    hosts refuse it: %s\n    hint: %s\n", trust.Printable(g.Refused), g.Hint)
	}
}

// signedWith returns a text with the keys whose signatures are valid.
func signedWith(keys []string) string {
	if len(keys) == 0 {
		return "not signed with a key that may sign it"
	}
	return "signed with " + shortKeys(keys)
}
