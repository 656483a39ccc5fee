package aws_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
)

// saltModules are the state modules of Salt 3006 whose names begin with boto.
const saltModules = `boto3_elasticache boto3_elasticsearch boto3_route53 boto3_sns boto_apigateway boto_asg boto_cfn
boto_cloudfront boto_cloudtrail boto_cloudwatch_alarm boto_cloudwatch_event boto_cognitoidentity boto_datapipeline
boto_dynamodb boto_ec2 boto_elasticache boto_elasticsearch_domain boto_elb boto_elbv2 boto_iam boto_iam_role boto_iot
boto_kinesis boto_kms boto_lambda boto_lc boto_rds boto_route53 boto_s3 boto_s3_bucket boto_secgroup boto_sns boto_sqs
boto_vpc`

// TestEachModuleOfSaltIsSupportedOrRefused checks that docs/orchestration.md has a row for each module, and that the
// hint for an unsupported module names a replacement.
func TestEachModuleOfSaltIsSupportedOrRefused(t *testing.T) {
	text, err := os.ReadFile("../../../docs/orchestration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, row, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `boto") &&
			rows[name] == "" {
			rows[name] = row
		}
	}
	modules, tables := strings.Fields(saltModules), aws.Tables(&aws.Cloud{})
	if len(modules) != 34 {
		t.Errorf("there are %d modules", len(modules))
	}
	for _, name := range modules {
		row := rows[name]
		if _, here := tables[name]; here {
			if row == "" || strings.Contains(row, "not here") {
				t.Errorf("the row of %s says %q, but the module exists", name, row)
			}
			continue
		}
		hint := diag.HintOf(module.Unknown(name+".present", nil))
		_, instead, _ := strings.Cut(row, "not here: ")
		found := false
		for _, word := range []string{"boto_elasticache", "boto_route53", "boto_sns", "aws s3 cp",
			"aws cloudformation deploy", "aws rds", "CloudFormation"} {
			found = found || strings.Contains(instead, word) && strings.Contains(hint, word)
		}
		if !found {
			t.Errorf("%s does not exist: its row says %q and its hint %q", name, row, hint)
		}
	}
}
