// Package user holds user.present and user.absent.
//
// An account is spread over passwd, group and shadow. A state names some of what these say; the rest
// is left alone. Check reads the account, writes down how it would look with what was asked for, and
// the difference between the two pictures is what will be reported: the same picture user.info gives
// to templates. Apply lets the host's account tools do it, looks again, and says so if something did
// not take.
//
// A password is a hash and still a secret. It goes to the tools through a pipe, and wherever it
// would show, a mark stands in its place.
package user

import (
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions are the functions of user.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &present{RemoveGroups: true, CreateHome: true, EnforcePassword: true, Unique: true}
		},
		"absent": func() module.Resource { return &absent{} },
	}
}

// redacted stands for every password.
const redacted = "XXX-REDACTED-XXX"
