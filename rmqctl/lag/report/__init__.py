"""``rmqctl lag report``: lag over one or many stores."""
