package publish

import (
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// HintIfMeant is the hint for a name that looks mistyped.
const HintIfMeant = "correct the command; or if it is meant, give --new as well"

// usualChannels returns the names of channels that most projects have.
func usualChannels() []string { return []string{"testing", "staging", "production"} }

// CheckChannelName returns an error if the name of a new channel looks mistyped: it differs in a letter or two from a
// channel of the project, or from a usual one.
func (n *Next) CheckChannelName(channel string, channels map[string]trust.Pointer) error {
	if _, there := channels[channel]; there || n.NewName || slices.Contains(usualChannels(), channel) {
		return nil
	}
	known := append(slices.Sorted(maps.Keys(channels)), usualChannels()...)
	known = slices.DeleteFunc(known, func(name string) bool { return WithoutDigits(name) == WithoutDigits(channel) })
	if like := diag.Misspelling(channel, known); like != "" {
		return NewMistake(diag.Usage, HintIfMeant, "the project has no channel %s, and the name is nearly that of %s",
			channel, like)
	}
	return nil
}

// WithoutDigits returns a name without its digits. Names that differ only in digits, such as shop1 and shop2, are not
// taken for typing errors.
func WithoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}
