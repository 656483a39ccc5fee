package virtualenv_test

import (
	"errors"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/module/pip"
	"github.com/corpus-agent/corpus-agent/state/module/virtualenv"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func functions() module.Table {
	tree := clienttest.Files{"salt://req.txt": "a==1.0\nb>1\n"}
	return virtualenv.Functions(func(p client.EnvironmentPackages) virtualenv.Pip { return pip.Into(p, tree) })
}

func prepare(t *testing.T, h *statetest.Host) {
	i := clienttest.Installed{Host: h}
	h.Provide(t, map[string]statetest.Program{
		"pip3": i.Pip, "/venv/bin/python": i.Pip,
		"python3": func(args []string, _ host.Command) (string, error) {
			if args[0] == "-c" {
				return "Python 3.11.2\n", nil
			}
			dir := args[len(args)-1]
			h.Build(t, statetest.Tree{dir + "/bin/python": statetest.File("simulated").With("0755", "", "")})
			if _, err := h.Files.Stat("/no-ensurepip"); err == nil {
				return "", errors.New("ensurepip is not available")
			}
			if _, err := h.Files.Stat("/no-pip"); err != nil {
				h.Build(t, statetest.Tree{dir + "/lib/python3.11/site-packages/pip/__init__.py": statetest.File("")})
			}
			return "", nil
		},
		"/new/bin/python": i.Pip,
	})
	// Provide has written to the environment that the state must create.
	if err := h.Files.RemoveAll("/new"); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) { clienttest.Run(t, "virtualenv", functions(), prepare) }

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutProgram(t, functions(), "managed", "python3-venv")
}
