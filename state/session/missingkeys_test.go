package session_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
)

// TestHintsForMissingKeys looks up keys that the pillar, the grains and a mapping lack. The hint names a similar key,
// and a method only if an attribute misspells it; otherwise it says how to list the keys.
func TestHintsForMissingKeys(t *testing.T) {
	const looks = "the pillar of this host has no key shop (`corpus-agent pillar` shows it); if it may be missing, " +
		"use .get('shop', ...)"
	for template, want := range map[string]string{
		`{{ pillar['shop'] }}`:      looks,
		`{{ pillar.shop }}`:         looks,
		`{{ pillar.shop.port }}`:    looks,
		`{{ pillar['sites'] }}`:     `did you mean "site"?`,
		`{{ pillar.site.port }}`:    "if it may be missing, use .get('port', ...)",
		`{{ pillar.site['port'] }}`: "if it may be missing, use .get('port', ...)",
		`{{ pillar.itmes() }}`:      `did you mean "items"?`,
		`{{ grains.datacenter }}`:   "this host has no grain datacenter (`corpus-agent grains` shows all)",
	} {
		set, _ := settings(t, map[string]string{
			"states/t.sls": "a: " + template + "\n", "pillar/top.sls": "base: {'*': [p]}\n",
			"pillar/p.sls": "site: {address: a}\n",
		})
		_, err := answer(t, families.New(set), "state.show_sls", "t")
		if list := mustProblems(t, err); len(list) != 1 || !strings.HasPrefix(list[0].Hint, want) {
			t.Errorf("%s: %v; want %s", template, err, want)
		}
	}
}
