package project

import (
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The environments of a project. They decide whether a deploy that failed is rolled back, whether unsigned trees may
// run, and what the defaults of the configuration are.
const (
	Dev     = "dev"
	Staging = "staging"
	Prod    = "prod"
)

// Environment returns the environment that the project was switched to, or else that of the host's instance.
func (r *Run) Environment() string {
	if r.Entry != nil && r.Entry.Env != "" {
		return r.Entry.Env
	}
	switch {
	case slices.Contains(r.Host.Config.Dev, r.Identity.Instance):
		return Dev
	case slices.Contains(r.Host.Config.Prod, r.Identity.Instance):
		return Prod
	}
	return Staging
}

// CheckEnvironment returns an error for a name that is not an environment.
func CheckEnvironment(env string) error {
	switch env {
	case "", Dev, Staging, Prod:
		return nil
	}
	return exit.WithCode(
		exit.Usage,
		diag.Usage.Hint(fmt.Errorf("%q is not an environment", env), "the environments are dev, staging and prod"),
	)
}
