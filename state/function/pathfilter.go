package function

import (
	"github.com/corpus-agent/corpus-agent/state/jinja"
)

// PathFilter returns a Jinja filter that calls ask with a path.
func PathFilter(name string, ask func(path string) any) jinja.Filter {
	return jinja.Define(name, func(c *jinja.Call) (any, error) {
		path, err := c.Str(0)
		if err != nil {
			return nil, err
		}
		return ask(path), nil
	}, jinja.Arg("path"))
}
