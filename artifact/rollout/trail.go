package rollout

import "slices"

// maxEarlier is the maximum number of earlier releases that a start keeps.
const maxEarlier = 8

// Trail returns the releases to which a channel can go back from a rollout, the newest first: what it named before the
// rollout, and what it named before that. A rollout that goes back itself does not lead to the release that it left. s
// may be nil.
func (s *Start) Trail() (trail []Before) {
	if s == nil {
		return nil
	}
	if s.Before != nil && !s.Back {
		trail = append(trail, *s.Before)
	}
	return append(trail, s.Earlier...)
}

// EarlierOf returns the releases for Start.Earlier of the next rollout of the channel: those that arrived before the
// release that it names as Before, or before its own release if it goes back. s may be nil.
func (s *Start) EarlierOf(next Start) (earlier []Before) {
	trail := s.Trail()
	if s != nil && next.Release == s.Release { // the same rollout starts again
		trail = s.Earlier
	}
	is := func(digest string) func(Before) bool {
		return func(b Before) bool { return string(b.Digest) == digest }
	}
	if at := slices.IndexFunc(trail, is(next.Release)); at >= 0 && next.Back {
		trail = trail[at+1:]
	}
	for _, b := range trail {
		again := string(b.Digest) == next.Release || next.Before != nil && b.Digest == next.Before.Digest ||
			slices.ContainsFunc(earlier, is(string(b.Digest)))
		if !again && !slices.Contains(next.Left, string(b.Digest)) {
			earlier = append(earlier, b)
		}
	}
	return earlier[:min(len(earlier), maxEarlier)]
}
