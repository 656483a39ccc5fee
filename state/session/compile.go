package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/sls"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// High returns the declarations of the SLS files in matches, and of the files that they include.
func (s *Session) High(ctx context.Context, matches []top.Match) (*compile.High, error) {
	if _, err := s.Pillar(ctx); err != nil {
		return nil, s.besidePillar(ctx, err, matches, true)
	}
	high, err := s.loader().High(ctx, matches)
	if err != nil {
		err = together(err, s.undeclarable(high))
	}
	return high, s.shown(err)
}

// Highstate returns all declarations for this host: those of the SLS files that the top file assigns, and those of its
// releases that are not in SLS files.
func (s *Session) Highstate(ctx context.Context) (*compile.High, []top.Match, error) {
	matches, err := s.Top(ctx)
	if err != nil {
		return nil, nil, err
	}
	high, err := s.High(ctx, matches)
	if err == nil && s.Declare != nil {
		err = s.Declare(high)
	}
	return high, matches, err
}

func (s *Session) loader() *sls.Loader {
	return &sls.Loader{Tree: s.states, Render: s.renderState, Unordered: !s.flag("state_auto_order", true)}
}

// Named returns a match for SLS files that are named instead of assigned by a top file.
func (s *Session) Named(names ...string) []top.Match {
	env := s.option("saltenv")
	if env == "" {
		env = "base"
	}
	return []top.Match{{Env: env, SLS: names}}
}

// Program compiles SLS files into a program.
func (s *Session) Program(ctx context.Context, matches []top.Match) (*compile.Program, error) {
	high, err := s.High(ctx, matches)
	if err != nil {
		return nil, err
	}
	return s.Compile(high)
}

// Compile compiles declarations into a program.
func (s *Session) Compile(high *compile.High) (*compile.Program, error) {
	s.loadStates(high)
	p, err := compile.Compile(high, vocabulary{s.registry(), s.own})
	if err != nil {
		return nil, s.shown(together(err, s.undeclarable(high)))
	}
	if s.Strict {
		s.addCertainFailures(p)
		if err := p.Problems.Err(); err != nil {
			return nil, s.shown(err)
		}
	}
	s.pointOutside(p)
	return p, nil
}

// pointOutside corrects the hints of requisites whose target exists only in a highstate, because the target is not
// declared in an SLS file.
func (s *Session) pointOutside(p *compile.Program) {
	high := &compile.High{Data: value.NewMap()}
	if len(p.Problems) == 0 || s.Declare == nil || s.Declare(high) != nil {
		return
	}
	outside, err := compile.Expand(high)
	if err != nil {
		return // the highstate reports it
	}
	for _, step := range p.Steps {
		for _, q := range step.Requisites {
			for _, t := range q.Targets {
				if i := slices.IndexFunc(outside, t.Names); t.Lost != nil && i >= 0 {
					t.Lost.Hint = diag.Requisite.Coded(fmt.Sprintf("%s declares it, not an SLS file: only a highstate has it "+
						"(`corpus-agent call state.apply` without names of SLS files)", outside[i].SLS()))
				}
			}
		}
	}
}
