// The rows of ops.def that only training records (of_training() of the reference).

void fill_training(Ops& ops) {
  ops.attend_dx = attend_dx;
  ops.conv_dw = conv_dw;
  ops.optimize = optimize;
  ops.scatter_add_rows = scatter_add_rows;
  ops.unary_dx = unary_dx;
  ops.gated_dx = gated_dx;
  ops.softmax_dx = softmax_dx;
  ops.norm_dx = norm_dx;
  ops.loss = loss;
  ops.lstm_cell_dx = lstm_cell_dx;
  ops.gru_cell_dx = gru_cell_dx;
  ops.pool_dx = pool_dx;
  ops.expert_matmul_dx = expert_matmul_dx;
  ops.expert_matmul_dw = expert_matmul_dw;
}
