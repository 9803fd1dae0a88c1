package registry

// CreateService is a durable command: it makes a service by hand, which then
// stays when it is empty. It refuses when the service exists.
type CreateService struct {
	Meta
	Service ServiceKey  `json:"service"`
	Info    ServiceInfo `json:"info"`
	// Adopt gives an existing service these settings instead of refusing, unless
	// somebody made it by hand.
	Adopt bool `json:"adopt,omitempty"`
}

func (c *CreateService) target() ServiceKey { return c.Service }

func (c *CreateService) refusal(svc *service) error {
	if svc == nil || (c.Adopt && !svc.kept) {
		return nil
	}
	return Refuse(ServiceExists, "serviceName", svc.grouped,
		"specified service already exists, serviceName : %s", svc.grouped)
}

func (c *CreateService) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if err := c.refusal(svc); err != nil {
		return Result{}, err
	}
	s.setService(sh, svc, c.Service, c.Info, c.Meta)
	return Result{}, nil
}

// UpdateService is a durable command: it replaces the settings of a service,
// which then stays when it is empty. A service that is not there is made: it was
// there when the command was proposed, or its ephemeral instances are not back
// yet after a restart.
type UpdateService struct {
	Meta
	Service ServiceKey  `json:"service"`
	Info    ServiceInfo `json:"info"`
}

func (c *UpdateService) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.setService(sh, sh.services[c.Service], c.Service, c.Info, c.Meta)
	return Result{}, nil
}

// setService gives a service settings that somebody chose. svc is nil when it is
// not there.
func (s *Store) setService(sh *shard, svc *service, key ServiceKey, info ServiceInfo, m Meta) {
	info.Set = true
	if svc == nil {
		svc = s.newService(sh, key, &info, m)
	} else {
		s.setInfo(sh, svc, &info, m)
	}
	svc.kept = true
}

func (s *Store) setInfo(sh *shard, svc *service, info *ServiceInfo, m Meta) {
	svc.info = info
	s.emit(sh, Event{Kind: ServiceUpdated, At: m.At, Cause: m.Cause, Service: svc.key, Revision: svc.changed(m.At)})
}

// DeleteService is a durable command: a service goes, with all that is in it.
type DeleteService struct {
	Meta
	Service ServiceKey `json:"service"`
	// IfEmpty refuses when the service has instances.
	IfEmpty bool `json:"ifEmpty,omitempty"`
}

func (c *DeleteService) target() ServiceKey { return c.Service }

func (c *DeleteService) refusal(svc *service) error {
	if svc == nil {
		return Refuse(ServiceNotFound, "serviceName", c.Service.Grouped(),
			"specified service not exist, serviceName : %s", c.Service.Grouped())
	}
	if c.IfEmpty && len(svc.records) > 0 {
		return Refuse(ServiceNotEmpty, "serviceName", svc.grouped,
			"service %s is not empty, can't be delete. Please unregister instance first", svc.grouped)
	}
	return nil
}

func (c *DeleteService) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if err := c.refusal(svc); err != nil {
		return Result{}, err
	}
	s.dropOverlays(sh, svc.key)
	s.dropService(sh, svc, c.Meta)
	return Result{}, nil
}

// SetCluster is a durable command: it sets a cluster's probe and metadata. The
// cluster and its service come into being when they are not there, and the
// service then stays when it is empty.
type SetCluster struct {
	Meta
	Service ServiceKey `json:"service"`
	Cluster Cluster    `json:"cluster"`
}

func (c *SetCluster) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if svc == nil {
		svc = s.newService(sh, c.Service, s.blank[KindAny], c.Meta)
	}
	cluster := c.Cluster
	svc.setCluster(&cluster)
	svc.kept = true
	s.emit(sh, Event{
		Kind: ClusterUpdated, At: c.At, Cause: c.Cause, Service: svc.key,
		Revision: svc.changed(c.At), Detail: cluster.Name,
	})
	return Result{}, nil
}
