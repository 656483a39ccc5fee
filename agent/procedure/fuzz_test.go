package procedure

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// FuzzSettings parses settings of set-configuration and --set, and merges them with the project's configuration.
// Accepted settings are a mapping that JSON can represent, and the memory for them is proportional to their length.
func FuzzSettings(f *testing.F) {
	for _, pairs := range []string{"user=www", "a:b=[1, {c: d}]", "domain=x\nurl={domain}/{a:b}", "a={a}{a}",
		"env_defaults:prod:a=1", "data=1\nos_defaults=[]", "a=&x [*x]", "=", "a::b=1"} {
		f.Add(pairs)
	}
	f.Fuzz(func(t *testing.T, pairs string) {
		settings, err := ParseSettings(strings.Split(pairs, "\n"), Input{})
		if err != nil {
			return
		}
		for _, l := range []Layers{{Given: settings}, {Sample: settings, Pillar: settings, Saved: settings, Given: settings,
			Env: "prod", OS: "Debian"}} {
			cfg, err := l.Merge()
			if err != nil {
				continue
			}
			if _, ok := cfg.Value(keyData).(*value.Map); !ok {
				t.Errorf("data is %v", cfg.Value(keyData))
			}
			if text, err := json.Marshal(cfg); err == nil && len(text) > 32<<20 {
				t.Errorf("%d bytes of settings became %d", len(pairs), len(text))
			}
		}
	})
}
