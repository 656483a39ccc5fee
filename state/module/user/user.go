// Package user implements user.present and user.absent.
//
// An account has entries in passwd, group and shadow. A state declares some of their fields and leaves the
// others unchanged. Check reads the account in the form that user.info has in templates, applies the declared
// fields to a copy, and reports the difference. Apply runs the account tools of the host, reads the account
// again, and returns an error if it still differs.
//
// A password hash is a secret as well. It is passed to the tools through a pipe and redacted in reports.
package user

import (
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions returns the functions of user.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &present{RemoveGroups: true, CreateHome: true, EnforcePassword: true, Unique: true}
		},
		"absent": func() module.Resource { return &absent{} },
	}
}

// redacted replaces every password in a report.
const redacted = "XXX-REDACTED-XXX"
