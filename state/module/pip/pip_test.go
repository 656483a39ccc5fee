package pip_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/module/pip"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func functions() module.Table {
	return pip.Functions(clienttest.Files{"salt://req.txt": "a==1.0\nb>1\n"})
}

func TestConformance(t *testing.T) {
	clienttest.Run(t, "pip", functions(), func(t *testing.T, h *statetest.Host) {
		i := clienttest.Installed{Host: h}
		h.Provide(t, map[string]statetest.Program{"pip3": i.Pip, "/venv/bin/python": i.Pip})
	})
}

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutProgram(t, functions(), "installed", "python3-pip")
}
