package session

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// showSLS returns the declarations of SLS files as rendered, before extend and the _in requisites are applied.
func (c *caller) showSLS() (Answer, error) {
	high, err := c.highOfNames()
	if err != nil {
		return Answer{}, err
	}
	return Answer{Value: high.Data}, compile.Verify(high)
}

// showHighstate returns the declarations of the files that the top file assigns to the host.
func (c *caller) showHighstate() (Answer, error) {
	high, _, err := c.Highstate(c.ctx)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Value: high.Data}, nil
}

// showLowSLS returns the steps of SLS files before extend and the _in requisites are applied.
func (c *caller) showLowSLS() (Answer, error) {
	names, err := c.names()
	if err != nil {
		return Answer{}, err
	}
	high, err := c.High(c.ctx, c.Named(names...))
	if err != nil {
		return Answer{}, err
	}
	if err := compile.Verify(high); err != nil {
		return Answer{}, err
	}
	return chunks(high)
}

// showLowstate returns the steps that would run: those of the top file, or of the SLS files that are named. Steps
// of named files are returned even if the pillar has problems; the problems are returned with them.
func (c *caller) showLowstate() (Answer, error) {
	if len(c.args) == 0 {
		high, _, err := c.Highstate(c.ctx)
		if err != nil {
			return Answer{}, err
		}
		return effective(high)
	}
	names, err := c.names()
	if err != nil {
		return Answer{}, err
	}
	_, broken := c.Pillar(c.ctx)
	c.partial = true
	high, err := c.High(c.ctx, c.Named(names...))
	if err != nil {
		return Answer{}, err
	}
	answer, err := effective(high)
	return answer, cmp.Or(err, broken)
}

// effective returns the steps of declarations after extend, _in requisites and exclusions are applied.
func effective(high *compile.High) (Answer, error) {
	if err := compile.Resolve(high); err != nil {
		return Answer{}, err
	}
	return chunks(high)
}

func chunks(high *compile.High) (Answer, error) {
	steps, err := compile.Expand(high)
	list := value.NewList()
	for _, s := range steps {
		list.Append(s.Chunk)
	}
	return Answer{Value: list}, err
}

func (c *caller) showTop() (Answer, error) {
	matches, err := c.Top(c.ctx)
	return Answer{Value: top.Map(matches)}, err
}

// showStates returns the SLS files that a highstate reads.
func (c *caller) showStates() (Answer, error) {
	matches, err := c.Top(c.ctx)
	if err != nil {
		return Answer{}, err
	}
	high, err := c.High(c.ctx, matches)
	if err != nil {
		return Answer{}, err
	}
	list := value.NewList()
	for _, body := range high.Data.All() {
		if m, ok := body.(*value.Map); ok {
			if sls := m.Value(compile.KeySLS); sls != nil && !value.Contains(list.Items, sls) {
				list.Append(sls)
			}
		}
	}
	return Answer{Value: list}, nil
}

// slsExists reports whether SLS files exist and render.
func (c *caller) slsExists() (Answer, error) {
	_, err := c.showSLS()
	return c.yes(err)
}

// idExists reports whether SLS files declare IDs.
func (c *caller) idExists() (Answer, error) {
	if len(c.args) < 2 {
		return Answer{}, misuse("write state.id_exists ID SLS", "state.id_exists takes IDs and SLS names")
	}
	wanted := strings.Split(value.Str(c.args[0]), ",")
	c.args = c.args[1:]
	answer, err := c.showLowSLS()
	if err != nil {
		return c.yes(err)
	}
	var ids []string
	for _, chunk := range answer.Value.(*value.List).Items {
		ids = append(ids, value.Str(chunk.(*value.Map).Value(compile.KeyID)))
	}
	for _, id := range wanted {
		if !slices.Contains(ids, id) {
			return Answer{Value: false}, nil
		}
	}
	return Answer{Value: true}, nil
}

// yes returns the answer to a question about SLS files: true, or false if err lists problems in them. Any other
// error is returned.
func (c *caller) yes(err error) (Answer, error) {
	var list diag.List
	if err != nil && !errors.As(err, &list) {
		return Answer{}, err
	}
	return Answer{Value: err == nil}, nil
}
