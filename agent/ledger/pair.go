package ledger

import "github.com/corpus-agent/corpus-agent/artifact"

// Pair is what a run deploys: base and service are deployed together, since they converge together.
type Pair struct {
	Base    *artifact.Release `json:"base,omitempty"` // nil if the store has no base
	Service artifact.Release  `json:"service"`        // zero in a pair of base alone
}

// BaseAlone reports whether the pair has no service.
func (p Pair) BaseAlone() bool { return p.Service.Project == "" && p.Base != nil }

// Same reports whether two pairs have the same bytes of the same projects. Two services may have the same bytes.
func (p Pair) Same(q Pair) bool { return p.identity() == q.identity() }

// identity returns what identifies a pair. The version is not part of it: the same bytes may have several versions.
func (p Pair) identity() [3]string {
	d := p.digests()
	return [3]string{p.Service.Project, string(d[0]), string(d[1])}
}

// digests returns the digests of the service and of base.
func (p Pair) digests() [2]artifact.Digest {
	d := [2]artifact.Digest{p.Service.Digest}
	if p.Base != nil {
		d[1] = p.Base.Digest
	}
	return d
}

func (p Pair) String() string {
	switch {
	case p.Base == nil:
		return p.Service.String()
	case p.BaseAlone():
		return p.Base.String()
	}
	return p.Base.String() + ", " + p.Service.String()
}

// Releases lists the releases of the pair, base first.
func (p Pair) Releases() []artifact.Release {
	switch {
	case p.Base == nil:
		return []artifact.Release{p.Service}
	case p.BaseAlone():
		return []artifact.Release{*p.Base}
	}
	return []artifact.Release{*p.Base, p.Service}
}

// Own returns the release of the service, or that of base if the pair has base alone.
func (p Pair) Own() artifact.Release {
	if p.BaseAlone() {
		return *p.Base
	}
	return p.Service
}

// Is reports whether version is the version, or the directory, of the pair's service.
func (p Pair) Is(version string) bool {
	return p.Service.Version == version || p.Service.Dir() == version
}
