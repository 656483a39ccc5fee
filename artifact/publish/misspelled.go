package publish

import (
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// IfMeant is the hint of what meant refuses.
const IfMeant = "correct the command; or if it is meant, give --new as well"

// usualChannels are names of channels that projects have, or will have.
func usualChannels() []string { return []string{"testing", "staging", "production"} }

// MeantChannel refuses a channel that a project does not have where its name was probably typed by mistake: it is a letter or
// two off that of another channel of the project, or off a usual one.
func (n *Next) MeantChannel(channel string, channels map[string]trust.Pointer) error {
	if _, there := channels[channel]; there || n.NewName || slices.Contains(usualChannels(), channel) {
		return nil
	}
	known := append(slices.Sorted(maps.Keys(channels)), usualChannels()...)
	known = slices.DeleteFunc(known, func(name string) bool { return Numberless(name) == Numberless(channel) })
	if like := diag.Misspelling(channel, known); like != "" {
		return NewMistake(IfMeant, "the project has no channel %s, and the name is nearly that of %s", channel, like)
	}
	return nil
}

// Numberless is a name without its digits: shop2 beside shop1 is no mistake.
func Numberless(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}
