package links

import (
	"net/netip"
	"testing"
)

func TestLinks(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if l.Name != "lo" {
			continue
		}
		for _, a := range l.Addresses {
			if a.Prefix == netip.MustParsePrefix("127.0.0.1/8") && a.Scope == "host" && a.Label == "lo" && !a.Secondary {
				return
			}
		}
	}
	t.Errorf("lo lacks 127.0.0.1/8 with scope host: %+v", all)
}
