package ledger_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestTwoServicesWithTheSameBytes checks that they are two pairs: the quarantine of one does not affect the other.
func TestTwoServicesWithTheSameBytes(t *testing.T) {
	web := ledger.Pair{Service: artifact.Release{Project: "web", Version: "1", Digest: "sha256:11"}}
	api := ledger.Pair{Service: artifact.Release{Project: "api", Version: "1", Digest: "sha256:11"}}
	for name, b := range map[string]ledger.Bad{"a release": {Pair: web, Release: &web.Service},
		"a pair of an older agent": {Pair: web}} {
		book := &ledger.Ledger{}
		book.Quarantine(b)
		if _, bad := book.IsBad(api); bad {
			t.Errorf("%s: the other service is in quarantine", name)
		}
		book.Quarantine(ledger.Bad{Pair: api, Release: &api.Service})
		if _, bad := book.IsBad(api); !bad || len(book.Bad) != 2 {
			t.Errorf("%s: the quarantine has %+v", name, book.Bad)
		}
	}
}
