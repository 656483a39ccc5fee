// Package compute has the states boto_ec2 and boto_lc: instances with their volumes, interfaces and addresses, key
// pairs, images, and the launch templates that instances of auto scaling groups start from.
package compute

import (
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// EC2Table returns the state functions of boto_ec2.
func EC2Table(c *cloud.Cloud) module.Table {
	return module.Table{
		"key_present": func() module.Resource { return &keyPair{Common: cloud.Common{Cloud: c}} },
		"key_absent":  func() module.Resource { return &keyPair{Common: cloud.Common{Cloud: c}, absent: true} },
		"instance_present": func() module.Resource {
			return &instancePresent{instanceNamed: instanceNamed{Common: cloud.Common{Cloud: c}}}
		},
		"instance_absent": func() module.Resource {
			return &instanceAbsent{instanceNamed: instanceNamed{Common: cloud.Common{Cloud: c}}}
		},
		"volume_present": func() module.Resource {
			return &volumePresent{volumeNamed: volumeNamed{Common: cloud.Common{Cloud: c}}}
		},
		"volume_absent": func() module.Resource {
			return &volumeAbsent{volumeNamed: volumeNamed{Common: cloud.Common{Cloud: c}}}
		},
		"volumes_tagged": func() module.Resource { return &volumesTagged{Common: cloud.Common{Cloud: c}} },
		"snapshot_created": func() module.Resource {
			return &imageCreated{Common: cloud.Common{Cloud: c}, Wait: true, Longest: 300}
		},
		"eni_present": func() module.Resource {
			return &interfacePresent{Common: cloud.Common{Cloud: c},
				Checked: true}
		},
		"eni_absent":          func() module.Resource { return &interfaceAbsent{Common: cloud.Common{Cloud: c}} },
		"private_ips_present": func() module.Resource { return &privateAddresses{Common: cloud.Common{Cloud: c}} },
		"private_ips_absent": func() module.Resource {
			return &privateAddresses{Common: cloud.Common{Cloud: c},
				absent: true}
		},
	}
}
