// Package group implements group.present and group.absent.
package group

import (
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of group.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &present{} },
		"absent":  func() module.Resource { return &absent{} },
	}
}

// Info returns a group in the form of Salt's group.info.
func Info(g host.Group) *value.Map {
	return value.NewMap("name", g.Name, "passwd", g.Password, "gid", g.GID, "members", value.Strings(g.Members...))
}
