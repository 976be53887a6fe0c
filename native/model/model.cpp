#include "model/model.h"

#include "base/error.h"

namespace oga {

std::shared_ptr<const Tokenizer> Model::tokenizer() const {
  Throw(StatusCode::kNotFound, "the model has no tokenizer; token ids work without one");
}

}  // namespace oga
