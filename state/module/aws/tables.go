package aws

import "github.com/corpus-agent/corpus-agent/state/module"

// Tables are the state functions of AWS, by the names of Salt's states.
func Tables(c *Cloud) module.Registry {
	return module.Registry{
		"boto_sqs": sqsTable(c),
		"aws_sqs":  sqsTable(c),
	}
}
