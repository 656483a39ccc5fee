// Package account gathers the states that are about users: who they are, who may log in as them,
// what cron runs for them, where their mail goes, and which hosts they and everybody know by name.
//
// Each state has a package of its own below this one. What several of them share is in two more:
// sshkey reads keys, owned makes files that belong to a user.
package account

import (
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/account/alias"
	"github.com/corpus-agent/corpus-agent/state/module/account/cron"
	"github.com/corpus-agent/corpus-agent/state/module/account/group"
	"github.com/corpus-agent/corpus-agent/state/module/account/hosts"
	"github.com/corpus-agent/corpus-agent/state/module/account/knownhosts"
	"github.com/corpus-agent/corpus-agent/state/module/account/sshauth"
	"github.com/corpus-agent/corpus-agent/state/module/account/user"
)

// Sources gives files of the state tree to the states that name some.
type Sources interface {
	sshauth.Sources
	cron.Sources
}

// Tables are the functions of all these states, by state.
func Tables(sources Sources) module.Registry {
	return module.Registry{
		"alias":           alias.Functions(),
		"cron":            cron.Functions(sources),
		"group":           group.Functions(),
		"host":            hosts.Functions(),
		"ssh_auth":        sshauth.Functions(sources),
		"ssh_known_hosts": knownhosts.Functions(),
		"user":            user.Functions(),
	}
}
