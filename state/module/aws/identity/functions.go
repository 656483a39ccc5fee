// Package identity has the states boto_iam, boto_iam_role and boto_kms: users, groups, roles, policies, server
// certificates, access keys and encryption keys.
package identity

import (
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// IAMTable returns the state functions of boto_iam.
func IAMTable(c *cloud.Cloud) module.Table {
	of := func(user, absent bool) func() module.Resource {
		return func() module.Resource {
			m := member{Common: cloud.Common{Cloud: c}, user: user, DeletePolicies: true}
			if absent {
				return &memberAbsent{member: m, DeleteKeys: true, DeleteDevices: true, DeleteProfile: true}
			}
			return &memberPresent{member: m}
		}
	}
	policy := func(absent bool) func() module.Resource {
		return func() module.Resource { return &managedPolicy{Common: cloud.Common{Cloud: c}, absent: absent} }
	}
	return module.Table{
		"user_present": of(true, false), "user_absent": of(true, true),
		"group_present": of(false, false), "group_absent": of(false, true),
		"policy_present": policy(false), "policy_absent": policy(true),
		"keys_present": func() module.Resource {
			return &keysPresent{Common: cloud.Common{Cloud: c}, Format: "{2}\n{0}\n{3}\n{1}\n"}
		},
		"keys_absent":         func() module.Resource { return &keysAbsent{Common: cloud.Common{Cloud: c}} },
		"account_policy":      func() module.Resource { return &passwordPolicy{Common: cloud.Common{Cloud: c}} },
		"server_cert_present": func() module.Resource { return &serverCertificate{Common: cloud.Common{Cloud: c}} },
		"server_cert_absent": func() module.Resource {
			return &serverCertificate{Common: cloud.Common{Cloud: c},
				absent: true}
		},
		"saml_provider_present": func() module.Resource { return &samlProvider{Common: cloud.Common{Cloud: c}} },
		"saml_provider_absent": func() module.Resource {
			return &samlProvider{Common: cloud.Common{Cloud: c}, absent: true}
		},
	}
}
