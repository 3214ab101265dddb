package main

import (
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/parquet"
)

func init() { dataset.Register(".parquet", parquet.Format) }
