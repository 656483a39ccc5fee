package debconf_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/debconf"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// tree reads files from /srv of the case. Its templates replace {{ x }} by x of the context.
type tree struct{ h *statetest.Host }

func (s tree) Script(_ context.Context, source, _, template string, vars *value.Map) ([]byte, error) {
	data, err := s.h.Files.ReadFile("/srv/" + strings.TrimPrefix(source, "salt://"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, fs.ErrNotExist)
	}
	if template == "" {
		return data, nil
	}
	return []byte(strings.ReplaceAll(string(data), "{{ x }}", value.Str(vars.Value("x")))), nil
}

// prepare adds a debconf-set-selections that writes the files of debconf.
func prepare(t *testing.T, h *statetest.Host) {
	const dir = "/var/cache/debconf/"
	statetest.UseTools(t, h,
		map[string]statetest.Tool{"debconf-set-selections": func(_ []string, stdin string) (string, error) {
			for l := range strings.Lines(stdin) {
				f := append(strings.SplitN(strings.TrimRight(l, "\n"), " ", 4), "")
				if f[1] == "locked" {
					return "", statetest.Code{Code: 1,
						Text: "debconf: DbDriver \"config\": /var/cache/debconf/config.dat is locked by another process"}
				}
				file := "config.dat"
				if f[2] == "password" {
					file = "passwords.dat"
				}
				h.Append(dir+file, fmt.Sprintf("Name: %s\nTemplate: %s\nValue: %s\nOwners: %s\nFlags: seen\n\n",
					f[1], f[1], f[3], f[0]))
				h.Append(dir+"templates.dat", fmt.Sprintf("Name: %s\nType: %s\nOwners: %s\n\n", f[1], f[2], f[1]))
			}
			return "", nil
		}})
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "debconf",
		Functions: func(h *statetest.Host) module.Table { return debconf.Functions(tree{h}) },
		Prepare:   prepare,
		Cases:     statetest.Load(t, "../../../testdata/modules/system/debconf.yaml"),
	})
}
