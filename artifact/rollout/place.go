package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"path"
	"slices"
)

// Host has the properties of a host that determine its place: its name, region and cluster.
type Host struct {
	Name    string
	Region  string
	Cluster string
}

// Place returns the position of a host in a rollout: hosts with a smaller place come first. It depends only on the
// release, the host's name and its region, so it does not change when hosts are added or removed, and other hosts come
// first with another release.
func (p Plan) Place(release string, h Host) uint32 {
	sum := sha256.Sum256([]byte("corpus rollout\n" + release + "\n" + h.Name))
	place := uint64(binary.BigEndian.Uint32(sum[:]))
	if len(p.Regions) > 0 {
		at := slices.Index(p.Regions, h.Region)
		if at < 0 {
			at = len(p.Regions)
		}
		place = (uint64(at)<<32 + place) / uint64(len(p.Regions)+1)
	}
	return uint32(place)
}

// Wave returns the wave of a host, counted from 0. Cuts are those of Cut.
func (p Plan) Wave(release string, h Host, cuts []uint32) int {
	last := len(p.Waves) - 1
	switch {
	case matches(p.First, h.Name):
		return 0
	case matches(p.Last, h.Name):
		return last
	}
	place := p.Place(release, h)
	for i, cut := range cuts[:min(len(cuts), last)] {
		if place < cut {
			return i
		}
	}
	return last
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// Idle returns the patterns of First and Last that match none of the hosts.
func (p Plan) Idle(hosts []Host) (patterns []string) {
	for _, pattern := range slices.Concat(p.First, p.Last) {
		if !slices.ContainsFunc(hosts, func(h Host) bool { return matches([]string{pattern}, h.Name) }) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// Cut divides the hosts that are known when a rollout starts: a wave has the hosts whose place is below its cut and not
// below the previous cut. Each wave gets a host while there are enough. The last wave needs no cut. Without known hosts
// the cuts are the waves' shares.
func (p Plan) Cut(release string, hosts []Host) (cuts []uint32, counts []int) {
	places := []uint32{}
	for _, h := range hosts {
		if !matches(p.First, h.Name) && !matches(p.Last, h.Name) {
			places = append(places, p.Place(release, h))
		}
	}
	slices.Sort(places)
	taken := 0
	for _, w := range p.Waves[:len(p.Waves)-1] {
		if len(places) == 0 {
			cuts = append(cuts, uint32((uint64(w.Share)<<32)/uint64(All)))
			continue
		}
		taken = min(max(w.Share.Of(len(places)), taken+1), len(places))
		cut := ^uint32(0)
		if taken < len(places) {
			cut = places[taken]
		}
		cuts = append(cuts, cut)
	}
	counts = make([]int, len(p.Waves))
	for _, h := range hosts {
		counts[p.Wave(release, h, cuts)]++
	}
	return cuts, counts
}
