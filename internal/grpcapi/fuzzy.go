package grpcapi

func (x *call) fuzzyWatch() error { x.succeed(); return nil }
