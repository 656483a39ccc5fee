package database

import "github.com/corpus-agent/corpus-agent/state/module"

func mysqlTables(Settings) module.Registry { return nil }
func mongoTable() module.Table             { return nil }
